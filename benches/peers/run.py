#!/usr/bin/env python3
"""Runs the benchmarks of the crate and of its peers on one machine, and compares them with goals.

goals/ has the rows and their goals. After each family, the folder --out has the results: results.csv (the record that
benches/record/ keeps), results.txt (command and machine), results.md and results.svg. A peer that cannot be built or run here
is reported and skipped.

On GPUs the peers are CUB, cuBLAS and CUDA kernels, built with nvcc. On every OpenCL device they are Boost.Compute, CLBlast and
pyopencl. The first two are built with g++ and Debian's libboost-dev, libclblast-dev, opencl-headers and ocl-icd-opencl-dev.
pyopencl is that of --python, which also needs numpy and mako. Another machine can build the programs with --build-only
--arch sm_90. Copy its folder of programs here, and name the copy with --build. Boost.Compute and CLBlast then need only
an OpenCL loader.
"""
import argparse
import concurrent.futures
import csv
import dataclasses
import datetime
import hashlib
import html
import io
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# CUDA programs of a family, if they are not named after it.
PROGRAMS = {"sort": ["sort", "sort_pairs"]}
# The peers on OpenCL devices.
PEERS = ["cuda", "boost", "clblast", "pyopencl"]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of `oclprim bench`."""

    name: str
    element: str
    n: int

    def __str__(self):
        return f"{self.name} {self.element} {self.n}"


@dataclasses.dataclass(frozen=True)
class Wish:
    """A row with its goal."""

    family: str
    row: Row
    goal: str
    peers: Row


def number(text):
    base, _, power = text.partition("^")
    return int(base) ** int(power or 1)


def wishes(path):
    """The rows of a file of goals."""
    found = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        family, name, elements, sizes, goal, peers = (field.strip() for field in line.split("|"))
        for n in map(number, sizes.split()):
            for element in elements.split():
                found.append(Wish(family, Row(name, element, n), goal, Row(peers or name, element, n)))
    return found


class Clock:
    """The time budget."""

    def __init__(self, seconds):
        self.start, self.seconds = time.monotonic(), seconds

    def left(self):
        return None if self.seconds is None else max(0.0, self.seconds - (time.monotonic() - self.start))

    def spent(self):
        return time.monotonic() - self.start


def run(command, clock, **options):
    """The exit code of a command; None if it ran out of time or does not start."""
    try:
        with subprocess.Popen(list(map(str, command)), **options) as child:
            try:
                return child.wait(clock.left())
            except subprocess.TimeoutExpired:
                child.kill()
                return None
            except BaseException:
                child.kill()
                raise
    except OSError as error:
        print(error, file=sys.stderr)
        return None


class Report:
    """The results so far, and the files that report them."""

    def __init__(self, folder, wanted, about):
        self.folder, self.wanted, self.about = folder, wanted, about
        # The output of each program.
        self.parts = folder / "parts"
        self.parts.mkdir(parents=True, exist_ok=True)
        self.own, self.peers, self.left_out = {}, {}, []

    def resume(self):
        """Reads the results of earlier runs of the same device and commit from the folder."""
        for path in sorted(self.parts.glob("own-*.json")):
            self.read_own(path)
        for path in sorted(self.parts.glob("peers-*.jsonl")):
            self.read_peers(path)

    def read_own(self, path):
        """Reads the output of the crate's program, if its last write is complete."""
        if path.exists():
            try:
                self.add_own(json.loads(path.read_text()))
            except json.JSONDecodeError:
                self.leave_out(f"{path.stem}, cut short")

    def read_peers(self, path):
        """Reads the output of a peer's program, except for an incomplete line."""
        for line in path.read_text().splitlines():
            if line.startswith("{") and line.endswith("}"):
                peer = json.loads(line)
                self.peers.setdefault(Row(peer["what"], peer["element"], peer["n"]), {})[peer["peer"]] = peer

    def leave_out(self, text):
        if text not in self.left_out:
            print(f"left out: {text}", file=sys.stderr)
            self.left_out.append(text)

    def add_own(self, report):
        device = report["device"]
        known = {
            "device": device["name"].strip(),
            "platform": device["platform"].strip(),
            "driver": device.get("driver", ""),
            "commit": report.get("commit"),
            "version": report["version"],
            "cold": report["cold"],
        }
        for key, value in known.items():
            if self.about.get(key, value) != value:
                sys.exit(f"{self.folder} has results of {key} {self.about[key]}, but this run has {value}: choose another folder with --out")
        self.about |= known
        for line in report["lines"]:
            row = Row(f"{line['primitive']} {line['form']}", line["element"], line["n"])
            if line["sample"]:
                self.own[row] = line
            else:
                self.leave_out(f"{row}: {line['error']}")

    def lines(self):
        """Each row with its results."""
        return [self.line(wish) for wish in self.wanted if wish.row in self.own or wish.peers in self.peers]

    def line(self, wish):
        own = self.own.get(wish.row)
        peers = sorted(self.peers.get(wish.peers, {}).values(), key=lambda peer: peer["median"])
        line = {
            "family": wish.family,
            "what": wish.row.name,
            "type": wish.row.element,
            "n": wish.row.n,
            "goal": wish.goal,
            "own": own,
            "peers": peers,
        }
        if own and peers:
            line["ratio"] = peers[0]["median"] / own["sample"]["median"]
            line["wall_ratio"] = own["wall"]["median"] / min(peer["wall"] for peer in peers)
        if own and own["copy_gb_per_s"]:
            line["of_copy"] = own["gb_per_s"] / own["copy_gb_per_s"]
        if own and wish.goal:
            shares = [self.share(part, line, wish) for part in wish.goal.split(" and ")]
            if None not in shares:
                line["share"] = min(shares)
                line["met"] = line["share"] >= 1 and not own["wrong"]
        return line

    def share(self, goal, line, wish):
        """How much of a goal was reached, as a ratio; None if unknown. The goal is met from 1 on."""
        own = line["own"]
        if found := re.fullmatch(r"([\d.]+) of (peer|copy)", goal):
            got = line.get("ratio" if found[2] == "peer" else "of_copy")
            return got and got / float(found[1])
        if found := re.fullmatch(r"([\d.]+) GB/s", goal):
            return own["gb_per_s"] / float(found[1])
        if found := re.fullmatch(r"([\d.]+) by wall", goal):
            return line.get("wall_ratio") and float(found[1]) / line["wall_ratio"]
        if found := re.fullmatch(r"([\d.]+) of (own|keys of) (.+)", goal):
            other = self.own.get(Row(found[3], wish.row.element, wish.row.n))
            if not other:
                return None
            faster = other["sample"]["median"] / own["sample"]["median"]
            return (faster if found[2] == "keys of" else own["gb_per_s"] / other["gb_per_s"]) / float(found[1])
        sys.exit(f"{wish.row}: no such goal: {goal}")

    def save(self):
        lines = self.lines()
        for name, text in [
            ("results.csv", table(lines)),
            ("results.txt", machine(self.about, self.left_out)),
            ("results.md", markdown(self.about, self.left_out, lines)),
            ("results.svg", chart(self.about, lines)),
        ]:
            part = self.folder / f"{name}.part"
            part.write_text(text.rstrip("\n") + "\n")
            part.replace(self.folder / name)


def size(n):
    return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 and n >= 1024 else f"{n:,}"


def rate(line):
    return line["bytes"] / line["median"] / 1e9 if line["median"] else 0.0


COLUMNS = (
    "what type n bytes median_s spread wall_s copy_gb_per_s wrong peer peer_median_s peer_spread peer_wall_s peer_ok goal share"
).split()


def table(lines):
    """One CSV line for each row and peer, or for a row without a peer. Seconds by the device's clock; `wall` by the host's."""
    text = io.StringIO()
    out = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    out.writeheader()
    for line in lines:
        row = {name: line[name] for name in ("what", "type", "n", "goal")}
        row["share"] = f"{line['share']:.3f}" if "share" in line else ""
        if own := line["own"]:
            row |= {"bytes": own["bytes"], "median_s": f"{own['sample']['median']:.4g}", "spread": f"{own['sample']['spread']:.3f}"}
            row |= {"wall_s": f"{own['wall']['median']:.4g}", "wrong": int(own["wrong"])}
            row["copy_gb_per_s"] = f"{own['copy_gb_per_s']:.1f}" if own["copy_gb_per_s"] else ""
        for peer in line["peers"] or [None]:
            beside = peer and {
                "peer": peer["peer"],
                "peer_median_s": f"{peer['median']:.4g}",
                "peer_spread": f"{peer['spread']:.3f}",
                "peer_wall_s": f"{peer['wall']:.4g}",
                "peer_ok": int(peer["ok"]),
            }
            out.writerow(row | (beside or {}))
    return text.getvalue()


def machine(about, left_out):
    """The command, the device and the tools of a run, one per line."""
    text = [f"command: {shlex.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])}"]
    text += [f"{key}: {', '.join(value) if isinstance(value, list) else value}" for key, value in about.items()]
    text += [f"host: {platform.processor() or platform.machine()}, {os.cpu_count()} cores"]
    return "\n".join(text + [f"left out: {what}" for what in left_out])


def markdown(about, left_out, lines):
    goals = [line for line in lines if line["own"] and line["goal"]]
    met, known = sum(line.get("met", False) for line in goals), sum("met" in line for line in goals)
    wrong = sum(bool(line["own"] and line["own"]["wrong"]) + sum(not p["ok"] for p in line["peers"]) for line in lines)
    text = [
        f"# {about.get('device', 'No device')} ({about.get('platform', '')}), {about['date']}",
        "",
        f"`benches/peers/run.py` at commit {about.get('commit') or 'unknown'}, driver {about.get('driver') or 'unknown'}"
        f"{''.join(', ' + x for x in about.get('tools', []))}; caches {'cold' if about.get('cold', True) else 'hot'}; medians, and half"
        " the distance between the 5th and the 95th percentile. GB/s count the bytes that must be read and written at least;"
        " a ratio is the speed of the crate over that of the fastest peer, both by the device's clock; wall times are the"
        f" host's. Goals met: {met} of {known}; results that are wrong: {wrong}.",
        "",
        "| what | type | n | GB/s | ± | of copy | peer | GB/s | ± | ratio | wall, µs | peer's wall, µs | goal | of the goal |",
        "|---|---|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|---|--:|",
    ]
    for line in lines:
        own, peer = line["own"], line["peers"][0] if line["peers"] else None
        row = [line["what"], line["type"], size(line["n"])]
        if own:
            sample, share = own["sample"], line.get("of_copy")
            row += [f"{own['gb_per_s']:,.0f}", f"{sample['spread']:.1%}", f"{share:.1%}" if share else ""]
        else:
            row += ["", "", ""]
        row += [peer["peer"], f"{rate(peer):,.0f}", f"{peer['spread']:.1%}"] if peer else ["", "", ""]
        row += [f"{line['ratio']:.2f}" if "ratio" in line else ""]
        row += [f"{own['wall']['median'] * 1e6:,.1f}" if own else "", f"{peer['wall'] * 1e6:,.1f}" if peer else ""]
        row += [line["goal"], f"{line['share']:.2f}" if "share" in line else ""]
        wrongs = (["WRONG"] if own and own["wrong"] else []) + [f"{p['peer']} is wrong" for p in line["peers"] if not p["ok"]]
        text.append("| " + " | ".join(row) + " |" + " ".join([""] + wrongs))
    missed = [line for line in goals if not line.get("met", True)]
    if missed:
        text += ["", "Missed: " + "; ".join(f"{x['what']} {x['type']} {size(x['n'])} ({x['share']:.2f})" for x in missed) + "."]
    if left_out:
        text += ["", "Left out: " + "; ".join(left_out) + "."]
    return "\n".join(text)


def chart(about, lines):
    """A bar per row of the crate, with marks for its fastest peer and for the copy of as many bytes."""
    shown = [line for line in lines if line["own"]]
    most = max([line["own"]["gb_per_s"] for line in shown] + [rate(p) for x in shown for p in x["peers"][:1]] + [1e-9])
    most = max([most] + [line["own"]["copy_gb_per_s"] or 0 for line in shown])
    left, width, step = 360, 520, 15
    out, y, family = [], 58, None

    def at(value):
        return left + width * value / most

    for line in shown:
        if line["family"] != family:
            family, y = line["family"], y + 8
        own = line["own"]
        colour = {True: "#2a7f4f", False: "#b5482f"}.get(line.get("met"), "#6b7785")
        label = html.escape(f"{line['what']} {line['type']} {size(line['n'])}")
        out.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">{label}</text>')
        bar = f'<rect x="{left}" y="{y + 1}" width="{max(at(own["gb_per_s"]) - left, 1):.1f}" height="{step - 4}" fill="{colour}"/>'
        out.append(bar)
        marks = [(rate(line["peers"][0]), "#1b1f24", 3)] if line["peers"] else []
        marks += [(own["copy_gb_per_s"], "#c9a227", 2)] if own["copy_gb_per_s"] else []
        for value, colour, thick in marks:
            out.append(f'<rect x="{at(value) - thick / 2:.1f}" y="{y - 1}" width="{thick}" height="{step}" fill="{colour}"/>')
        told = f"{own['gb_per_s']:,.0f}" + (f", {line['ratio']:.2f} of {line['peers'][0]['peer']}" if "ratio" in line else "")
        out.append(f'<text x="{left + width + 8}" y="{y + 10}">{html.escape(told)}</text>')
        y += step
    key = "GB/s. Bars: green if the goal is met, red if missed, grey without a goal; marks: black fastest peer, yellow driver's copy"
    head = html.escape(f"{about.get('device', 'No device')}, {about['date']}, commit {about.get('commit') or 'unknown'}")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 210}" height="{y + 12}" font-family="sans-serif" font-size="10.5">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="12" y="22" font-size="14">{head}</text>',
            f'<text x="12" y="42">{html.escape(key)}</text>',
            *out,
            "</svg>",
        ]
    )


def crate(options, clock, report, family, wanted):
    """Measures the crate's own rows."""
    path = report.parts / f"own-{family}.json"
    path.unlink(missing_ok=True)
    command = [options.program, "bench", "--device", options.device, "--json", path]
    for row in wanted:
        command += ["--row", str(row)]
    try:
        code = run(command + options.arguments, clock, stdout=subprocess.DEVNULL)
    finally:
        report.read_own(path)
    for row in wanted:
        if row not in report.own:
            late = "because time ran out" if code is None else "which the crate does not measure"
            report.leave_out(f"{row}, {late}")


class Cuda:
    """The peers in CUDA, built in parallel into a folder that later runs and other machines of the same kind can use."""

    def __init__(self, options):
        self.options, self.folder = options, options.build
        self.nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")

    def stem(self, name):
        return stem(HERE / "cuda" / f"{name}.cu", HERE / "cuda" / "harness.cuh")

    def build(self, name, cccl):
        """Builds a program with nvcc's own CCCL, or another one. Returns an error, if there is one."""
        program = self.folder / (self.stem(name) + (f"-{cccl_version(cccl)}" if cccl else ""))
        if program.exists():
            return None
        if not self.nvcc:
            return f"{name}.cu, because nvcc is missing"
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [self.nvcc, "-O3", "-std=c++17", f"-arch={self.options.arch}", "--extended-lambda"]
        command += [f"-I{folder}" for folder in [cccl, *self.options.include] if folder]
        command += [f"-L{folder}" for folder in self.options.libraries]
        return compiled([*command, HERE / "cuda" / f"{name}.cu", "-ldl"], program, f"{name}.cu")

    def build_all(self, families, report):
        cccls = [None] + ([self.options.cccl] if self.options.cccl else [])
        jobs = [(name, cccl) for family in families for name in self.names(family) for cccl in cccls]
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for text in filter(None, pool.map(lambda job: self.build(*job), jobs)):
                report.leave_out(text)

    def names(self, family):
        return [name for name in PROGRAMS.get(family, [family]) if (HERE / "cuda" / f"{name}.cu").exists()]

    def measure(self, clock, report, family, wanted):
        programs = [program for name in self.names(family) for program in sorted(self.folder.glob(f"{self.stem(name)}*"))]
        for program in programs:
            path = report.parts / f"peers-{program.name}.jsonl"
            try:
                with path.open("w") as out:
                    code = run([program, *wanted], clock, stdout=out)
            finally:
                report.read_peers(path)
            if code is None or code:
                why = "time ran out" if code is None else f"exit code {code}"
                report.leave_out(f"{program.name}, or parts of it: {why}")


class OpenCl:
    """The peers in OpenCL on the crate's device: Boost.Compute and CLBlast, built like those in CUDA, and pyopencl."""

    def __init__(self, options, device):
        self.options, self.folder, self.device = options, options.build, device
        self.compiler = shutil.which("g++")
        self.names = [name for name in ["boost", "clblast"] if name in options.peers]

    def program(self, name):
        return self.folder / stem(HERE / "opencl" / f"{name}.cpp", HERE / "opencl" / "harness.hpp")

    def build(self, name):
        """Builds a program. Returns an error, if there is one."""
        program = self.program(name)
        if program.exists():
            return None
        if not self.compiler:
            return f"{name}.cpp, because g++ is missing"
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [self.compiler, "-O2", "-std=c++17", "-static-libstdc++", "-static-libgcc"]
        command += [f"-I{folder}" for folder in self.options.include] + [f"-L{folder}" for folder in self.options.libraries]
        command += [HERE / "opencl" / f"{name}.cpp"]
        if name == "clblast":
            # The program links the static library, if there is one, so that it needs only the loader.
            library = ["-print-file-name=libclblast.a"]
            found = subprocess.run([self.compiler, *library], capture_output=True, text=True).stdout.strip()
            command += [found if "/" in found else "-lclblast"]
        return compiled([*command, "-lOpenCL"], program, f"{name}.cpp")

    def build_all(self, families, report):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for text in filter(None, pool.map(self.build, self.names)):
                report.leave_out(text)
        self.commands = {name: [self.program(name)] for name in self.names if self.program(name).exists()}
        if "pyopencl" not in self.options.peers or self.options.build_only:
            return
        python = [self.options.python, "-W", "ignore"]
        there = subprocess.run([*python, "-c", "import pyopencl.algorithm"], capture_output=True, text=True)
        if not there.returncode:
            self.commands["pyopencl"] = [*python, HERE / "opencl" / "pyopencl_peers.py"]
        else:
            why = (there.stderr.strip().splitlines() or ["no reason given"])[-1]
            report.leave_out(f"pyopencl, which {self.options.python} does not import: {why}")

    def measure(self, clock, report, family, wanted):
        if not self.device:
            report.leave_out("the peers in OpenCL, because the crate's program reports no device")
            return
        for name, command in self.commands.items():
            path = report.parts / f"peers-{name}-{family}.jsonl"
            try:
                with path.open("w") as out:
                    self.rows(clock, report, name, command, wanted, out)
            finally:
                report.read_peers(path)

    def rows(self, clock, report, name, command, wanted, out):
        """Runs a program. If a row ends it, for example by a crash of a compiler, runs it again with the rows after that one."""
        while wanted:
            before = out.tell()
            code = run([*command, self.device, *wanted], clock, stdout=out)
            lines = pathlib.Path(out.name).read_bytes()[before:].decode(errors="replace").splitlines()
            begun = [line.removeprefix("begin: ") for line in lines if line.startswith("begin: ")]
            for line in lines:
                if line.startswith("left out: "):
                    report.leave_out(f"{line.removeprefix('left out: ')}, by {name}")
            if code is None or (code and not begun):
                why = "time ran out" if code is None else f"exit code {code}"
                report.leave_out(f"{name}, or parts of it: {why}")
            elif code:
                report.leave_out(f"{begun[-1]}, by {name}: exit code {code}")
            if not code or not begun:
                return
            wanted = wanted[wanted.index(begun[-1]) + 1 :]


class Cpu:
    """The peers of the CPU backend, in Rust; without cargo, programs that were built elsewhere."""

    def __init__(self, options):
        self.options, self.done = options, False
        self.program = options.build / "release" / "cpu-peers"

    def build_all(self, families, report):
        manifest = HERE / "cpu" / "Cargo.toml"
        command = ["cargo", "build", "--release", "--quiet", "--manifest-path", manifest, "--target-dir", self.options.build]
        there = not subprocess.run(list(map(str, command))).returncode if shutil.which("cargo") else self.program.exists()
        if not there:
            report.leave_out("the peers on the CPU, which do not build")
            self.done = True

    def measure(self, clock, report, family, wanted):
        # One program measures all families.
        if self.done:
            return
        self.done = True
        path = report.parts / "peers-cpu.jsonl"
        sizes = dict.fromkeys(f"{wish.family}:{wish.row.n}" for wish in report.wanted)
        with path.open("w") as out:
            code = run([self.program, *sizes], clock, stdout=out)
        report.read_peers(path)
        if code is None or code:
            report.leave_out("a part of the peers on the CPU")


def stem(*parts):
    """The name of a program's file, which has a hash of its sources."""
    return f"{parts[0].stem}-{hashlib.sha256(b''.join(part.read_bytes() for part in parts)).hexdigest()[:12]}"


def compiled(command, program, name):
    """Runs a compiler. Returns an error, if there is one."""
    part = program.with_name(f"part-{program.name}")
    made = subprocess.run([*map(str, command), "-o", str(part)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        return f"{name}, which does not build: {made.stdout[-2000:]}"
    part.replace(program)
    return None


def found_device(options, clock):
    """The crate's report on the device, by its smallest benchmark; None if it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "device.json"
        command = [options.program, "bench", "--device", options.device, "--runs", 1, "--row", "copy aligned u32 1024"]
        run([*command, "--json", path], clock, stdout=subprocess.DEVNULL)
        return json.loads(path.read_text())["device"] if path.exists() else None


def peers_of(options, device):
    """The peers to measure. Those in CUDA need a GPU; all can be built without a device."""
    if options.no_peers:
        return []
    if options.device == "cpu":
        return [Cpu(options)]
    name = device and f"{device['platform'].strip()} / {device['name'].strip()}"
    with_cuda = "cuda" in options.peers and (not device or device["type"] == "gpu")
    return ([Cuda(options)] if with_cuda else []) + [OpenCl(options, name)]


def cccl_version(folder):
    """The version of CUB in a folder of headers."""
    text = (pathlib.Path(folder) / "cub" / "version.cuh").read_text()
    return re.search(r"define CUB_VERSION (\d+)", text)[1]


def tools():
    """Versions of the tools that build the peers."""
    found = []
    for command, pattern in [
        (["nvcc", "--version"], r"release ([^,]+)"),
        (["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], r"([\d.]+)"),
    ]:
        path = shutil.which(command[0]) or shutil.which(f"/usr/local/cuda/bin/{command[0]}")
        text = subprocess.run([path, *command[1:]], capture_output=True, text=True).stdout if path else ""
        if version := re.search(pattern, text):
            found.append(("CUDA " if command[0] == "nvcc" else "NVIDIA driver ") + version[1])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/oclprim", help="the crate's program")
    parser.add_argument("--device", default="gpu", help="as for `oclprim bench`")
    parser.add_argument("--goals", type=pathlib.Path, help="a file of rows; default: the file in goals/ for the device")
    parser.add_argument("--only", type=lambda text: text.split(","), help="families, such as scan,sort, in this order")
    parser.add_argument("--budget", type=float, help="time limit in seconds; then no program starts, and a running one is ended")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/peers/results", help="the folder of the results")
    parser.add_argument("--resume", action="store_true", help="keep the results in --out, and measure the given families (again)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "target/peers/programs", help="the folder of the peers' programs")
    parser.add_argument("--build-only", action="store_true", help="build the peers and measure nothing")
    parser.add_argument("--arch", default="native", help="architecture for nvcc, such as sm_90 on a machine without a GPU")
    parser.add_argument("--cccl", help="headers of another CCCL; the peers are built with it, too")
    parser.add_argument("--include", action="append", default=[], help="a folder of headers for the compilers")
    parser.add_argument("--libraries", action="append", default=[], help="a folder of libraries for the compilers")
    parser.add_argument("--python", default=sys.executable, help="a Python with pyopencl, mako and numpy")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="number of compilers at a time")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=PEERS, help=f"only these, out of {','.join(PEERS)}")
    parser.add_argument("--no-peers", action="store_true", help="measure the crate alone")
    parser.add_argument("arguments", nargs="*", help="more arguments of `oclprim bench`, after --")
    options = parser.parse_args()
    if unknown := set(options.peers) - set(PEERS):
        sys.exit(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    clock = Clock(options.budget)
    device = None if options.device == "cpu" or options.build_only else found_device(options, clock)
    usual = "cpu" if options.device == "cpu" else "opencl" if device and device["type"] == "cpu" else "gpu"
    asked = wishes(options.goals or HERE / "goals" / f"{usual}.txt")
    known = list(dict.fromkeys(wish.family for wish in asked))
    families = options.only or known
    if unknown := set(families) - set(known):
        sys.exit(f"no such family: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    about = {"date": datetime.date.today().isoformat(), "tools": tools()}
    report = Report(options.out, asked, about)
    if options.resume:
        report.resume()
    peers = peers_of(options, device)
    for peer in peers:
        peer.build_all(families, report)
    if options.build_only:
        sys.exit(1 if report.left_out else 0)
    # A run that is ended from outside still reports its measurements.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    for family in families:
        rows = list(dict.fromkeys(wish.row for wish in asked if wish.family == family))
        theirs = list(dict.fromkeys(str(wish.peers) for wish in asked if wish.family == family))
        if clock.left() == 0:
            report.leave_out(f"{family}, because time ran out")
            continue
        before = clock.spent()
        try:
            # The peers come first, because they take less time. If time runs out, the crate's results still have peers.
            for peer in peers:
                peer.measure(clock, report, family, theirs)
            crate(options, clock, report, family, rows)
        finally:
            report.save()
        print(f"{family}: {clock.spent() - before:.0f} s", file=sys.stderr)
    lines = report.lines()
    print(markdown(report.about, report.left_out, lines))
    wrong = sum(bool(line["own"] and line["own"]["wrong"]) + sum(not p["ok"] for p in line["peers"]) for line in lines)
    if wrong:
        sys.exit(f"{wrong} results are wrong")


main()
