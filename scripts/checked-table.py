#!/usr/bin/env python3
"""Reports of `oclprim check --json` as one table in Markdown: the checks that passed, by form, type and device.

usage: scripts/checked-table.py NAME=REPORT.json...

NAME heads the column of a report, whose OpenCL devices and geometries are taken together. `-` is a form that a report does
not have, or that was skipped there. A form that failed is an error.
"""
import json
import sys


def cells(path):
    """{form: {type: (passed, failed, skipped)}} over all devices of a report but the CPU backend, where there are others."""
    devices = json.load(open(path))["devices"]
    opencl = [d for d in devices if "rayon" not in d["device"]] or devices
    found = {}
    for device in opencl:
        for form in device["forms"]:
            types = found.setdefault(form["name"], {})
            for name, counts in form["types"].items():
                old = types.get(name, (0, 0, 0))
                types[name] = tuple(a + counts[k] for a, k in zip(old, ("passed", "failed", "skipped")))
    return found


def main():
    columns = [argument.split("=", 1) for argument in sys.argv[1:]]
    if not columns or any(len(column) != 2 for column in columns):
        sys.exit(__doc__)
    reports = [(name, cells(path)) for name, path in columns]
    forms = list(dict.fromkeys(form for _, report in reports for form in report))
    print("| form | types |" + "".join(f" {name} |" for name, _ in reports))
    print("|---|---|" + "--:|" * len(reports))
    wrong = []
    for form in forms:
        types = list(dict.fromkeys(t for _, report in reports for t in report.get(form, {})))
        row = [form, ", ".join(types)]
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
