#!/usr/bin/env python3
"""Reports of `oclprim check --json` as one table in Markdown: the checks that passed, by form, type and device.

usage: scripts/checked-table.py [--groups] NAME=REPORT.json[,REPORT.json...]...

NAME heads the column of the reports of one driver, whose OpenCL devices and geometries are taken together. `-` is a form
that they do not have, or that was skipped there. A form that failed is an error. With --groups, a row is of forms alike.
"""
import json
import re
import sys

TYPES = "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64".split()
# What a form's name, its primitive in front, begins with or has in it, and what its group is called.
GROUPS = [
    (r"^large", "beyond 2^31 elements"),
    (r"along an axis", "reduce along an axis"),
    (r"of segments", "reduce segments"),
    (r"^reduce by", "reduce by one's own operator"),
    (r"^reduce (dot|\w+ of|\w+ in)\b", "reduce in a wider type, of a function, dot"),
    (r"^reduce (sum|product)", "reduce sum, product"),
    (r"^reduce (min|max)$", "reduce min, max"),
    (r"^reduce (arg|min-max)", "reduce arg-min, arg-max, min-max"),
    (r"^reduce (and|or|xor)", "reduce and, or, xor"),
    (r"^reduce count", "reduce count"),
    (r"^reduce statistics", "reduce statistics"),
    (r"^scan segmented", "scan in segments"),
    (r"^scan .* of lines", "scan along an axis"),
    (r"^scan by", "scan by one's own operator"),
    (r"^scan sum as", "scan in a wider type"),
    (r"^scan (sum|product)", "scan sum, product"),
    (r"^scan", "scan min, max, and, or, xor"),
    (r"^transpose batch", "transpose batches"),
    (r"^transpose in place", "transpose in place"),
    (r"^transpose \d", "transpose"),
    (r"^transpose", "transpose with a cast, factor, function"),
    (r"^permute", "permute"),
    (r"weighted", "histogram of weights"),
    (r"^histogram channels", "histogram of channels"),
    (r"^histogram edges", "histogram by edges"),
    (r"^histogram even", "histogram of even bins"),
    (r"^histogram mapped", "histogram of a function"),
    (r"^histogram", "histogram of ids"),
    (r"^copy (gather|scatter)", "copy gather, scatter"),
    (r"^copy (strided|copy ranges)", "copy strided, many ranges"),
    (r"^copy reverse", "copy reverse"),
    (r"^copy", "copy"),
    (r"^sort (segments|offsets)", "sort segments"),
    (r"^sort .*in place", "sort in place"),
    (r"^sort .*(pairs|columns)", "sort with values"),
    (r"^sort .*places", "places in order"),
    (r"^sort", "sort keys"),
    (r"^merge merge sort", "merge sort"),
    (r"^merge (union|intersection|difference|symmetric)", "set operations"),
    (r"^merge (lower|upper|first)", "searches"),
    (r"^merge", "merge"),
    (r"^iota", "iota"),
    (r"^select (selected|places|values|host)", "select"),
    (r"^select parted", "partition"),
    (r"^select (unique|run-length|non-trivial)", "unique, runs"),
    (r"^select .*by key", "reduce by key"),
    (r"^select adjacent", "adjacent difference"),
    (r"^topk (keys? of|quantiles)", "keys of ranks, quantiles"),
    (r"^topk", "top-k"),
    (r"^random", "random"),
]


def group_of(form):
    return next((group for pattern, group in GROUPS if re.search(pattern, form)), form)


def cells(paths, groups):
    """{form: {type: (passed, failed, skipped)}} over all devices of reports but the CPU backend, where there are others."""
    found = {}
    for path in paths:
        devices = json.load(open(path))["devices"]
        for device in [d for d in devices if "rayon" not in d["device"]] or devices:
            for form in device["forms"]:
                types = found.setdefault(group_of(form["name"]) if groups else form["name"], {})
                for name, counts in form["types"].items():
                    old = types.get(name, (0, 0, 0))
                    types[name] = tuple(a + counts[k] for a, k in zip(old, ("passed", "failed", "skipped")))
    return found


def main():
    groups = "--groups" in sys.argv[1:]
    columns = [argument.split("=", 1) for argument in sys.argv[1:] if argument != "--groups"]
    if not columns or any(len(column) != 2 for column in columns):
        sys.exit(__doc__)
    reports = [(name, cells(paths.split(","), groups)) for name, paths in columns]
    forms = list(dict.fromkeys(form for _, report in reports for form in report))
    if groups:
        names = [group for _, group in GROUPS]
        forms.sort(key=lambda form: names.index(form) if form in names else len(names))
    print("| form | types |" + "".join(f" {name} |" for name, _ in reports))
    print("|---|---|" + "--:|" * len(reports))
    wrong = []
    for form in forms:
        types = sorted({t for _, report in reports for t in report.get(form, {})}, key=TYPES.index)
        row = [form, "all" if types == TYPES else ", ".join(types)]
        for name, report in reports:
            seen = report.get(form, {})
            if any(failed for _, failed, _ in seen.values()):
                wrong.append(f"{form} failed on {name}")
            lacking = [t for t in types if seen.get(t, (0, 0, 0))[0] == 0]
            passed = sum(counts[0] for counts in seen.values())
            if lacking == types:
                row.append("-")
            else:
                row.append(f"{passed:,}" + (f", not {', '.join(lacking)}" if lacking else ""))
        print("| " + " | ".join(row) + " |")
    if wrong:
        sys.exit("\n".join(wrong))


main()
