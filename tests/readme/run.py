"""Runs the shell blocks of docs/api.md below "Five minutes with curl" against `cargo local`, as a user would paste
them, and compares their output with the blocks that follow them. Digits may differ, and `…` matches any text.

Usage: run.py PROGRAM"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOUR = Path(__file__).parents[2] / "docs/api.md"
PATIENCE = 60
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
END = "the end of a block"


def blocks():
    """Returns pairs of pasted text and expected output."""
    section = TOUR.read_text().split("\n## Five minutes with curl\n")[1].split("\n## ")[0]
    pairs = []
    for language, text in BLOCK.findall(section):
        if language == "sh":
            pairs.append([text, ""])
        else:
            pairs[-1][1] += text
    assert len(pairs) > 5 and pairs[-1][1], pairs
    return pairs


def one_line(text):
    return re.sub(r"\d+", "0", "".join(text.split("\n")))


def is_printed(documented, printed):
    parts = (re.escape(part) for part in one_line(documented).split("…"))
    return re.fullmatch(".*".join(parts), one_line(printed)) is not None


def paste(texts, program, folder, api):
    """Runs all texts in one shell, in which `cargo` is a function that runs the program. Returns the output of each
    text."""
    script = f"""cargo() {{ shift; '{program}' "$@" --data-dir '{folder}'; }}\n"""
    for text in texts:
        script += re.sub(r"^API=\S+$", f"API={api}", text, flags=re.MULTILINE) + f"echo; echo '{END}'\n"
    shell = subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return shell.stdout.split(f"{END}\n")[:-1]


def main(program):
    program = Path(program).resolve()
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", "0", "--data-dir", folder]
        service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            api = next(line.split()[1] for line in service.stdout if line.startswith("API"))
            pairs = blocks()
            printed = paste([text for text, _ in pairs], program, folder, api)
            for (text, documented), answer in zip(pairs, printed, strict=True):
                assert is_printed(documented, answer), f"{text}\nprints\n{answer}\nand not\n{documented}"
            print(f"{len(pairs)} blocks of docs/api.md print the documented output")
        finally:
            service.terminate()
            service.wait(timeout=PATIENCE)


main(sys.argv[1])
