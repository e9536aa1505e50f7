#!/usr/bin/env python3
"""Draws README's chart of a record: speed relative to the fastest peer, in one SVG for light pages and one for dark pages.

    benches/record/chart.py benches/record/nvidia-h200/2026-11-25.csv docs/images/speed
"""
import csv
import html
import pathlib
import sys

# The label of each bar, and the row of the record (2^28 elements) that it shows.
SHOWN = [
    ("top 1,024 of f32", "topk 1024, random", "f32"),
    ("sort u32", "sort keys, bits", "u32"),
    ("unique, runs of 16", "select unique, runs of 16", "u32"),
    ("select half of u32", "select selected, 50 %", "u32"),
    ("scan u32", "scan sum inclusive", "u32"),
    ("histogram, 256 bins", "histogram even, 256 bins, uniform", "f32"),
    ("transpose u32", "transpose 4-byte elements", "u32"),
    ("sum f32", "reduce sum fast", "f32"),
]
THEMES = {
    "light": {"text": "#1f2328", "muted": "#59636e", "bar": "#1a7f64"},
    "dark": {"text": "#f0f6fc", "muted": "#9198a1", "bar": "#3fb68b"},
}
LEFT, WIDTH, RIGHT, STEP, BAR = 160, 330, 210, 28, 16


def fastest_peers(path):
    """(label, own GB/s, peer GB/s, peer) for each shown row."""
    found = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            if int(row["n"]) == 2**28 and row["median_s"] and row["peer_median_s"]:
                own, peer = (int(row["bytes"]) / float(row[name]) / 1e9 for name in ("median_s", "peer_median_s"))
                found.setdefault((row["what"], row["type"]), []).append((peer, own, row["peer"]))
    return [(label, own, peer, name) for label, *key in SHOWN for peer, own, name in [max(found[tuple(key)])]]


def svg(rows, colours):
    unit = WIDTH / max(own / peer for _, own, peer, _ in rows)
    height = 40 + STEP * len(rows)
    head = "NVIDIA H200, 2^28 elements: speed; 1 is the fastest of CUB, cuBLAS and CUDA kernels"
    line = f'x1="{LEFT + unit:.1f}" x2="{LEFT + unit:.1f}" y1="28" y2="{height - 6}"'
    out = [f'<text x="8" y="16" fill="{colours["text"]}" font-size="12" font-weight="bold">{head}</text>']
    for i, (label, own, peer, name) in enumerate(rows):
        y, width = 34 + STEP * i, unit * own / peer
        text = html.escape(f"{own / peer:.2f}: {own:,.0f} GB/s, {name} {peer:,.0f}")
        out.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end" fill="{colours["text"]}">{html.escape(label)}</text>')
        out.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2" fill="{colours["bar"]}"/>')
        out.append(f'<text x="{LEFT + width + 6:.1f}" y="{y + 13}" fill="{colours["muted"]}" font-size="11">{text}</text>')
    out.append(f'<line {line} stroke="{colours["text"]}" stroke-dasharray="3 3"/>')
    width = LEFT + WIDTH + RIGHT
    open_tag = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join([f'{open_tag} font-family="sans-serif" font-size="13" role="img" aria-label="{head}">', *out, "</svg>", ""])


def main():
    record, stem = sys.argv[1:]
    rows = fastest_peers(record)
    for theme, colours in THEMES.items():
        pathlib.Path(f"{stem}-{theme}.svg").write_text(svg(rows, colours))


main()
