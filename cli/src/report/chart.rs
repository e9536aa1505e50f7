//! Charts as SVG inside of the page.

use maud::{Markup, html};

/// A horizontal bar. If it has no value, its row shows only the text.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: Option<f64>,
    /// The text beside the bar.
    pub(super) text: String,
}

impl Bar {
    fn drawn(&self) -> Option<f64> {
        self.value.filter(|value| value.is_finite())
    }
}

/// A line of a chart of growth, by ascending x.
pub(super) struct Curve {
    pub(super) label: String,
    pub(super) points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.0;
/// The average width of a letter.
const LETTER: f64 = 6.6;

/// A coordinate with one decimal.
fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Round numbers from 0 to `most`, at most seven.
fn ticks(most: f64) -> Vec<f64> {
    if !(most.is_finite() && most > 0.0) {
        return vec![0.0];
    }
    let power = 10f64.powf((most / 6.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| most / step <= 6.0);
    let step = step.unwrap_or(10.0 * power);
    (0..=6).map(|i| f64::from(i) * step).take_while(|tick| *tick <= most * (1.0 + 1e-9)).collect()
}

/// The label of a tick, without trailing zeros.
fn tick_label(value: f64) -> String {
    if value == 0.0 || value.abs() >= 10.0 {
        format!("{value:.0}")
    } else {
        format!("{:.3}", value).trim_end_matches('0').trim_end_matches('.').into()
    }
}

/// Horizontal bars, and a vertical line at `line` with its label. `label` says what the chart shows.
pub(super) fn bars(label: &str, axis: &str, bars: &[Bar], line: (f64, &str)) -> Markup {
    let longest = |text: fn(&Bar) -> &str| bars.iter().map(|bar| text(bar).chars().count()).max().unwrap_or(0) as f64;
    let (left, right) = (longest(|bar| &bar.label) * LETTER + 12.0, longest(|bar| &bar.text) * LETTER + 16.0);
    let plot = (WIDTH - left - right).max(160.0);
    let width = left + plot + right;
    let (top, row) = (26.0, 26.0);
    let bottom = top + row * bars.len() as f64;
    let most = bars.iter().filter_map(Bar::drawn).chain([line.0]).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let most = if most > 0.0 { most * 1.02 } else { 1.0 };
    let x = |value: f64| left + plot * (value / most).clamp(0.0, 1.0);
    // The label stays inside, whichever side of the plot the line is on.
    let anchor = if x(line.0) > left + plot / 2.0 { "end" } else { "start" };
    html! {
        svg class="chart bars" viewBox={ "0 0 " (px(width)) " " (px(bottom + 44.0)) } role="img" aria-label=(label) {
            @for tick in ticks(most) {
                line class="grid" x1=(px(x(tick))) x2=(px(x(tick))) y1=(px(top)) y2=(px(bottom)) {}
                text class="tick" x=(px(x(tick))) y=(px(bottom + 16.0)) text-anchor="middle" { (tick_label(tick)) }
            }
            text class="axis" x=(px(left + plot / 2.0)) y=(px(bottom + 36.0)) text-anchor="middle" { (axis) }
            @for (index, bar) in bars.iter().enumerate() {
                @let y = top + row * index as f64;
                text class="name" x=(px(left - 8.0)) y=(px(y + 17.0)) text-anchor="end" { (bar.label) }
                @if let Some(value) = bar.drawn() {
                    rect class="bar" x=(px(left)) y=(px(y + 4.0)) width=(px(x(value) - left)) height=(px(row - 8.0)) rx="2" {
                        title { (bar.label) ": " (bar.text) }
                    }
                }
            }
            line class="copy" x1=(px(x(line.0))) x2=(px(x(line.0))) y1=(px(top - 6.0)) y2=(px(bottom)) {}
            text class="copy" x=(px(x(line.0))) y=(px(top - 11.0)) text-anchor=(anchor) { (line.1) }
            // The texts are beside the plot: at the end of its bar, a text would cross the line.
            @for (index, bar) in bars.iter().enumerate() {
                text class=(if bar.drawn().is_some() { "value" } else { "value missing" })
                    x=(px(left + plot + 10.0)) y=(px(top + row * index as f64 + 17.0)) { (bar.text) }
            }
        }
    }
}

/// Ascending exponents `k`. The first `base^k` is at most `least`, and the last is at least `most`.
fn powers(base: f64, least: f64, most: f64) -> Vec<i32> {
    let low = (least.log(base) + 1e-9).floor() as i32;
    let high = ((most.log(base) - 1e-9).ceil() as i32).max(low + 1);
    (low..=high).collect()
}

/// Moves labels apart, so that neighbours have a distance of `gap`. It first moves them down, then up from the lower
/// end.
fn spread(positions: &mut [f64], gap: f64, bottom: f64) {
    let mut order: Vec<_> = (0..positions.len()).collect();
    order.sort_by(|&a, &b| positions[a].total_cmp(&positions[b]));
    for pair in 1..order.len() {
        positions[order[pair]] = positions[order[pair]].max(positions[order[pair - 1]] + gap);
    }
    let mut limit = bottom;
    for &index in order.iter().rev() {
        positions[index] = positions[index].min(limit);
        limit = positions[index] - gap;
    }
}

/// Curves on two logarithmic axes: x in powers of two, y in seconds.
pub(super) fn growth(label: &str, axis: &str, curves: &[Curve]) -> Markup {
    let positive = |(x, y): &(f64, f64)| *x > 0.0 && *y > 0.0 && y.is_finite();
    let points = || curves.iter().flat_map(|curve| &curve.points).copied().filter(|point| positive(point));
    let range = |of: fn((f64, f64)) -> f64| {
        let (least, most) = points().map(of).fold((f64::MAX, 0.0), |(least, most), v| (v.min(least), v.max(most)));
        if most > 0.0 { (least, most) } else { (1.0, 2.0) }
    };
    let ((least_x, most_x), (least_y, most_y)) = (range(|point| point.0), range(|point| point.1));
    let decades = powers(10.0, least_y, most_y);
    let (low, high) = (f64::from(decades[0]), f64::from(decades[decades.len() - 1]));
    let longest = curves.iter().map(|curve| curve.label.chars().count()).max().unwrap_or(0) as f64;
    let (left, right, top, bottom) = (62.0, longest * LETTER + 26.0, 14.0, 374.0);
    let plot = (WIDTH - left - right).max(260.0);
    let (first, last) = (least_x.log2(), most_x.log2().max(least_x.log2() + 1.0));
    let x = |value: f64| left + plot * (value.log2() - first) / (last - first);
    let y = |value: f64| bottom - (bottom - top) * (value.log10() - low) / (high - low);
    let last_of = |curve: &Curve| curve.points.iter().copied().rfind(positive);
    let mut ends: Vec<_> = curves.iter().map(|curve| last_of(curve).map_or(bottom, |point| y(point.1))).collect();
    spread(&mut ends, 16.0, bottom);
    let xs: Vec<i32> = (first.ceil() as i32..=last.floor() as i32).filter(|power| power % 2 == 0).collect();
    html! {
        svg class="chart growth" viewBox={ "0 0 " (px(left + plot + right)) " " (px(bottom + 50.0)) } role="img" aria-label=(label) {
            @for &decade in &decades {
                @let at = y(10f64.powi(decade));
                line class="grid" x1=(px(left)) x2=(px(left + plot)) y1=(px(at)) y2=(px(at)) {}
                text class="tick" x=(px(left - 8.0)) y=(px(at + 4.0)) text-anchor="end" { (duration(decade)) }
            }
            @for power in xs {
                @let at = x(2f64.powi(power));
                line class="grid" x1=(px(at)) x2=(px(at)) y1=(px(top)) y2=(px(bottom)) {}
                text class="tick" x=(px(at)) y=(px(bottom + 18.0)) text-anchor="middle" {
                    "2" tspan class="power" dy="-5" { (power) }
                }
            }
            text class="axis" x=(px(left + plot / 2.0)) y=(px(bottom + 42.0)) text-anchor="middle" { (axis) }
            @for (index, curve) in curves.iter().enumerate() {
                @let shown = curve.points.iter().filter(|point| positive(point)).collect::<Vec<_>>();
                @let way = shown.iter().map(|point| format!("{},{}", px(x(point.0)), px(y(point.1)))).collect::<Vec<_>>();
                g class={ "curve c" (index % 8) } {
                    polyline points=(way.join(" ")) {}
                    @for point in &shown {
                        circle class="point" cx=(px(x(point.0))) cy=(px(y(point.1))) r="3.2" {
                            title { (curve.label) ", 2^" (point.0.log2().round()) ": " (crate::output::time(point.1)) }
                        }
                    }
                    @if let Some(end) = last_of(curve) {
                        line class="lead" x1=(px(x(end.0) + 4.0)) y1=(px(y(end.1))) x2=(px(left + plot + 14.0)) y2=(px(ends[index])) {}
                        text class="end" x=(px(left + plot + 18.0)) y=(px(ends[index] + 4.0)) { (curve.label) }
                    }
                }
            }
        }
    }
}

/// The text of `10^power` seconds, with its unit.
fn duration(power: i32) -> String {
    let (unit, base) = match power {
        0.. => ("s", 0),
        -3..0 => ("ms", -3),
        -6..-3 => ("µs", -6),
        _ => ("ns", -9),
    };
    format!("{} {unit}", tick_label(10f64.powi(power - base)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(ticks(100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(3.1), [0.0, 1.0, 2.0, 3.0]);
        for most in [1e-9, 0.3, 7.0, 12345.0, 9e12] {
            let all = ticks(most);
            assert!((3..=7).contains(&all.len()) && all.is_sorted() && all[all.len() - 1] <= most * 1.001, "{all:?}");
        }
        assert_eq!((ticks(0.0), ticks(f64::NAN), ticks(f64::INFINITY)), (vec![0.0], vec![0.0], vec![0.0]));
    }

    #[test]
    fn labels_do_not_overlap() {
        let mut positions = [100.0, 101.0, 99.0, 300.0, 300.0];
        spread(&mut positions, 16.0, 300.0);
        let mut sorted = positions;
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 16.0 - 1e-9), "{positions:?}");
        assert!(sorted[4] <= 300.0 && positions[2] < positions[0], "{positions:?}");
    }

    #[test]
    fn markup_in_labels_is_escaped() {
        let bar = Bar { label: "<script>".into(), value: Some(1.0), text: "\"&".into() };
        let text = bars("a \"chart\"", "x", &[bar], (2.0, "copy")).into_string();
        assert!(!text.contains("<script") && text.contains("&lt;script&gt;"), "{text}");
        assert!(text.contains("aria-label=\"a &quot;chart&quot;\""), "{text}");
    }

    #[test]
    fn values_that_are_not_numbers_leave_coordinates_finite() {
        let bar = |value| Bar { label: "a".into(), value, text: String::new() };
        let text =
            bars("", "", &[bar(None), bar(Some(f64::NAN)), bar(Some(f64::INFINITY))], (0.0, "copy")).into_string();
        let curve = |points: &[(f64, f64)]| Curve { label: "b".into(), points: points.to_vec() };
        let all = [curve(&[]), curve(&[(1024.0, 0.0)]), curve(&[(1024.0, 1e-6)])];
        for text in [text, growth("", "", &all).into_string(), growth("", "", &all[..1]).into_string()] {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }

    #[test]
    fn each_curve_has_a_mark_for_each_point() {
        let points = vec![(1024.0, 1e-6), (4096.0, 2e-6), (16384.0, 9e-6)];
        let curves = ["a", "b"].map(|label| Curve { label: label.into(), points: points.clone() });
        let text = growth("growth", "n", &curves).into_string();
        assert_eq!((text.matches("<circle").count(), text.matches("<polyline").count()), (6, 2));
        assert!(text.contains(">1 µs<") && text.contains(">10 µs<"), "{text}");
    }
}
