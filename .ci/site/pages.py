# SPDX-License-Identifier: Apache-2.0
"""The pages that are made of the program, and files beside docs/, for mkdocs.

mkdocs.yml names this file as a hook. Commands and metrics are kept in docs/reference, for readers of the repository:
`make reference` writes them, and tests/docs/test_reference.py compares. The others are made with every build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from commands import command_page
from documents import document_page, schema_text
from messages import message_page
from metrics import metric_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from python_api import api_page

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ("cg", "heat", "jacobi_py", "samplesort", "wavefront")
BESIDE = {
    "index.md": "README.md",
    **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
    **{f"examples/{name}/README.md": f"examples/{name}/README.md" for name in EXAMPLES},
}
"""Pages made of documents outside of docs/."""

_LINK = re.compile(r"(!?)\[([^\]]+)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
_DEFINITION = re.compile(r"^(\[\w+\]: )([^#:\s]+)(?=#|$)", re.MULTILINE)  # of the link that [text][name] is
_PICTURE = re.compile(r"(?<=src=\"|set=\")([^\":]+)(?=\")")  # of HTML


def kept_pages() -> dict[str, str]:
    """Return the text of the pages that are made of the program and kept in docs/, by their path there."""
    return {
        "reference/commands.md": command_page(),
        "reference/messages.md": message_page(),
        "reference/metrics.md": metric_page(),
    }


def generated_pages() -> dict[str, str]:
    """Return the text of the pages that are made of the program with every build, by their path below docs/."""
    return {
        "reference/json.md": document_page(),
        "reference/quipu.schema.json": schema_text(),
        "reference/python.md": api_page(),
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs/."""
    texts = generated_pages() | {page: (ROOT / path).read_text(encoding="utf-8") for page, path in BESIDE.items()}
    for name, text in texts.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files of the repository lead to their pages here; what is there and has none is named only."""
    here = page.file.src_uri
    pages = {BESIDE.get(name, f"docs/{name}"): name for name in files.src_uris}
    folder = posixpath.dirname(BESIDE.get(here, f"docs/{here}"))

    def led(match: re.Match[str]) -> str:
        picture, label, link, anchor = match.groups(default="")
        target = posixpath.normpath(posixpath.join(folder, link))
        if target in pages:
            return f"{picture}[{label}]({posixpath.relpath(pages[target], posixpath.dirname(here))}{anchor})"
        return label if (ROOT / target).exists() else match[0]

    def defined(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2]))
        return match[1] + posixpath.relpath(pages[target], posixpath.dirname(here)) if target in pages else match[0]

    def shown(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[0]))
        return posixpath.relpath(pages[target], posixpath.dirname(here)) if target in pages else match[0]

    return _PICTURE.sub(shown, _DEFINITION.sub(defined, _LINK.sub(led, markdown)))


if __name__ == "__main__":
    for name, text in kept_pages().items():
        (ROOT / "docs" / name).parent.mkdir(exist_ok=True)
        (ROOT / "docs" / name).write_text(text, encoding="utf-8")
