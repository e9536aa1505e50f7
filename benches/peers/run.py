#!/usr/bin/env python3
"""Runs the crate's benchmarks and those of its peers on one machine, and prints one table of ratios.

A peer that cannot be built or run here is named and left out.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def crate(program, device, arguments, folder):
    """The lines of `oclprim bench`, in one report for each primitive, so that one failure costs one of them."""
    lines = []
    for primitive in ("copy", "reduce", "transpose", "histogram", "scan", "sort"):
        report = folder / f"{primitive}.json"
        command = [program, "bench", primitive, "--device", device, "--json", report, *arguments]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode > 1 or not report.exists():
            print(f"left out: the crate's own {primitive}", file=sys.stderr)
            continue
        for line in json.loads(report.read_text())["lines"]:
            if line["sample"]:
                lines.append(line)
    return lines


def cuda(source, folder):
    """What a program of one CUDA source prints."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print(f"left out: {source}, for want of nvcc", file=sys.stderr)
        return []
    program = folder / source.removesuffix(".cu")
    build = [nvcc, "-O3", "-std=c++17", "-arch=native", "--extended-lambda", HERE / source, "-o", program]
    if subprocess.run(build).returncode:
        print(f"left out: {source}, which does not build", file=sys.stderr)
        return []
    run = subprocess.run([program], stdout=subprocess.PIPE, text=True)
    if run.returncode:
        print(f"left out: a part of {source}, exit code {run.returncode}", file=sys.stderr)
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def cpu(folder):
    """What the Rust peers of the CPU backend print."""
    manifest = HERE / "cpu" / "Cargo.toml"
    build = ["cargo", "build", "--release", "--quiet", "--manifest-path", manifest, "--target-dir", folder]
    if not shutil.which("cargo") or subprocess.run(build).returncode:
        print("left out: the peers on the CPU, which do not build", file=sys.stderr)
        return []
    run = subprocess.run([pathlib.Path(folder) / "release" / "cpu-peers"], stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def plain(line):
    """The name under which a line of the crate meets a peer's: without what peers have no choice in."""
    name = f"{line['primitive']} {line['form']}"
    return re.sub(r" (fixed|fast)\b| ids,| even,", "", name)


def gb(seconds, size):
    return f"{size / seconds / 1e9:,.0f}" if seconds else "-"


def table(own, peers):
    print("| what | type | n | GB/s | ± | peer | GB/s | ± | ratio | wall, µs | peer's wall, µs |")
    print("|---|---|--:|--:|--:|---|--:|--:|--:|--:|--:|")
    wrong = 0
    for line in own:
        sample = line["sample"]
        size, name = line["bytes"], f"{line['primitive']} {line['form']}"
        found = [p for p in peers if (p["what"], p["element"], p["n"]) == (plain(line), line["element"], line["n"])]
        wrong += line["wrong"] + sum(not p["ok"] for p in found)
        for peer in found or [None]:
            row = [name, line["element"], f"{line['n']:,}", gb(sample["median"], size), f"{sample['spread']:.1%}"]
            if peer:
                ratio = f"{peer['median'] / sample['median']:.2f}" + ("" if peer["ok"] else " (peer wrong)")
                row += [peer["peer"], gb(peer["median"], peer["bytes"]), f"{peer['spread']:.1%}", ratio]
                row += [f"{line['wall']['median'] * 1e6:.1f}", f"{peer['wall'] * 1e6:.1f}"]
            else:
                copy = line["copy_gb_per_s"]
                ratio = f"{line['gb_per_s'] / copy:.2f}" if copy else "-"
                row += ["its device's copy", f"{copy:,.0f}" if copy else "-", "", ratio, f"{line['wall']['median'] * 1e6:.1f}", ""]
            print("| " + " | ".join(row) + " |" + (" WRONG" if line["wrong"] else ""))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="target/release/oclprim")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("arguments", nargs="*", help="more arguments of `oclprim bench`, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        peers = cpu(folder) if options.device == "cpu" else cuda("cub.cu", folder)
        own = crate(options.program, options.device, options.arguments, folder)
    wrong = table(own, peers)
    if wrong:
        sys.exit(f"{wrong} results are wrong")


main()
