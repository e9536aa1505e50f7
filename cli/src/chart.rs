//! A ladder as a bar chart.

use std::path::Path;

use plotters::prelude::*;

use crate::{
    ladder_results::Report,
    output::{Stop, digits, of_file},
};

const BAR: RGBColor = RGBColor(60, 110, 170);
const ROOF: RGBColor = RGBColor(200, 60, 50);

/// Draws one bar for the bandwidth of each step that ran, and a line for the bandwidth of the copy.
pub(crate) fn draw(path: &Path, report: &Report) -> Result<String, Stop> {
    let bars: Vec<_> = report.rungs.iter().filter_map(|step| Some((step.name.as_str(), step.gb_per_s?))).collect();
    if bars.is_empty() {
        return Err(Stop::usage(format!("{}: no step ran, so there is nothing to draw", path.display())));
    }
    let mut svg = String::new();
    render(&mut svg, report, &bars).map_err(of_file(path))?;
    Ok(svg)
}

fn render(svg: &mut String, report: &Report, bars: &[(&str, f64)]) -> Result<(), Box<dyn std::error::Error>> {
    let height = 150 + 26 * bars.len() as u32;
    let root = SVGBackend::with_string(svg, (960, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let most = bars.iter().map(|bar| bar.1).fold(report.copy_gb_per_s, f64::max) * 1.12;
    let longest = bars.iter().map(|bar| bar.0.len()).max().unwrap_or(0) as u32;
    let caption = format!("{} ladder: {}", report.ladder, report.request);
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .caption(caption, ("sans-serif", 20))
        .x_label_area_size(48)
        .y_label_area_size(24 + 8 * longest)
        .build_cartesian_2d(0.0..most, -0.5..bars.len() as f64 - 0.5)?;
    // The first step is at the top.
    let row = |index: usize| (bars.len() - 1 - index) as f64;
    let name = |y: &f64| {
        let index = bars.len() as f64 - 1.0 - y.round();
        let on_bar = (y - y.round()).abs() < 1e-6;
        bars.get(index as usize).filter(|_| on_bar && index >= 0.0).map_or(String::new(), |bar| bar.0.to_owned())
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc(format!("effective bandwidth in GB/s on {}", report.device))
        .y_labels(2 * bars.len() + 1)
        .y_label_formatter(&name)
        .label_style(("sans-serif", 13))
        .draw()?;
    chart.draw_series(bars.iter().enumerate().map(|(index, &(_, value))| {
        let (bottom, top) = (row(index) - 0.36, row(index) + 0.36);
        Rectangle::new([(0.0, bottom), (value, top)], BAR.filled())
    }))?;
    let text = ("sans-serif", 13).into_text_style(&root).color(&BLACK);
    chart.draw_series(bars.iter().enumerate().map(|(index, &(_, value))| {
        Text::new(digits(value), (value + most * 0.005, row(index) + 0.22), text.clone())
    }))?;
    let ends = [-0.5, bars.len() as f64 - 0.5].map(|y| (report.copy_gb_per_s, y));
    chart
        .draw_series(LineSeries::new(ends, ROOF.stroke_width(2)))?
        .label(format!("copy: {} GB/s", digits(report.copy_gb_per_s)))
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], ROOF.stroke_width(2)));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 13))
        .draw()?;
    root.present()?;
    Ok(())
}
