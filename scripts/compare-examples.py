"""Runs examples and their NumPy twins: compare-examples.py FOLDER, where FOLDER has the built examples.

For each examples/numpy/NAME.py, the printed results of NAME.rs and NAME.py must be equal. No example has OpenCL C text.
The work in Rust has at most 1.5 times as many lines as in NumPy. The work is the functions that have the same name in
both files. Blank lines and comments do not count.
"""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOT_COMPARED = ("device: ", "time: ")

counts = {"passed": 0, "failed": 0}


def record(name, good, detail):
    counts["passed" if good else "failed"] += 1
    if not good:
        print(f"FAILED {name}: {detail}")


def results(*command):
    """The lines that a program prints about its results, and those about times."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240)
    if done.returncode != 0:
        return [f"exit code {done.returncode}: {(done.stdout + done.stderr).strip()}"], []
    lines = done.stdout.splitlines()
    return [line for line in lines if not line.startswith(NOT_COMPARED)], [line for line in lines if line.startswith("time: ")]


def functions(text, keyword):
    """The number of lines of each function of a file, without blank lines and comments."""
    lengths, name = {}, None
    for line in text.splitlines():
        start = re.match(rf"{keyword} (\w+)", line)
        if start:
            name = start[1]
            lengths[name] = 0
        elif line[:1] not in ("", " ", "}"):
            name = None
        if name and line.strip() and not line.strip().startswith(("//", "#")):
            lengths[name] += 1
        if line.startswith("}"):
            name = None
    return lengths


def main():
    folder = Path(sys.argv[1])
    for twin in sorted((EXAMPLES / "numpy").glob("*.py")):
        name = twin.stem
        if name == "common":
            continue
        source = (EXAMPLES / f"{name}.rs").read_text()
        (ours, times), (numpys, numpy_times) = results(folder / name), results(sys.executable, twin)
        record(f"{name}: results", ours == numpys and ours, "\n".join(["oclprim:", *ours, "NumPy:", *numpys]))
        rust, python = functions(source, "fn"), functions(twin.read_text(), "def")
        work = sorted(rust.keys() & python.keys())
        ours, numpys = (sum(lines[function] for function in work) for lines in (rust, python))
        record(f"{name}: length", 0 < ours <= 1.5 * numpys, f"{work} have {ours} lines, in NumPy {numpys}")
        text = re.search(r"__kernel|\b(Map|Operator|Less)::new\b|\bof_struct\b|with_functions", source)
        record(f"{name}: no OpenCL C", not text, text and text[0])
        print(f"{name}: {ours} lines, NumPy {numpys}; " + ", ".join(line.removeprefix("time: ") for line in times + numpy_times))
    print(f"examples: {counts['passed']} passed, {counts['failed']} failed")
    sys.exit(1 if counts["failed"] else 0)


main()
