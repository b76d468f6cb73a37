#!/usr/bin/python3
"""Cost of reading a stack from outside, and the share of torn reads.

  bench/scenarios/stacks.py [--reads N]

Builds crates/spy's example `stack_cost` and lets it read a command-line PHP that is 30 calls deep.
The program computes, waits, or only calls functions. Each is measured with opcache, whose function
names are cached by address, as in Samovar's workers, and without opcache, where each name is read
each time. Times are wall-clock times of the reader.
"""

import argparse
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPTH = 30
CLASS = "<?php\nclass Deep {\n"
ENDS = {
    "computes": "while (true) { for ($i = 0; $i < 1000; $i++); }",
    "waits": "while (true) { sleep(1); }",
    "calls": "while (true) { $this->leaf(1); $this->leaf(2); }",
}
OPCACHE = ["-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1",
           "-d", "opcache.file_update_protection=0"]


def program(end):
    """A method for each call: no name occurs twice."""
    methods = [f"function call{n}() {{ return $this->call{n + 1}(); }}\n" for n in range(2, DEPTH)]
    last = f"function call{DEPTH}() {{ echo 1; {end} }}\nfunction leaf($x) {{ return $x; }}\n}}\n"
    return CLASS + "".join(methods) + last + "(new Deep())->call2();\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reads", type=int, default=20000)
    reads = parser.parse_args().reads
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "samovar-spy", "--example", "stack_cost"],
                   cwd=ROOT, check=True)
    for name, end in ENDS.items():
        for cache, flags in (("opcache", OPCACHE), ("no opcache", [])):
            print(f"{name}, {cache}: {measure(program(end), flags, reads)}")


def measure(text, flags, reads):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "deep.php"
        script.write_text(text, encoding="utf-8")
        php = subprocess.Popen(["php", "-n", *flags, script], stdout=subprocess.PIPE)
        try:
            php.stdout.read(1)
            cost = [ROOT / "target/release/examples/stack_cost", str(php.pid), str(reads)]
            return subprocess.run(cost, check=True, capture_output=True, text=True).stdout.strip()
        finally:
            php.kill()
            php.wait()


if __name__ == "__main__":
    main()
