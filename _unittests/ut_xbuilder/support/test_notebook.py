"""Tables of a notebook: escaped, and cut."""

from __future__ import annotations

from xbuilder.support.notebook import html_table


def test_table():
    text = html_table("a<b", ["<x>"], [["<script>"], ["y" * 1000]])
    assert "<p><b>a&lt;b</b></p>" in text and "<th>&lt;x&gt;</th>" in text
    assert "<script>" not in text and "<td>&lt;script&gt;</td>" in text
    assert f"<td>{'y' * 199}…</td>" in text and text.endswith("</table>")
