"""The first screen as one file."""

import base64
import hashlib
import re

from console.scans import EVERYTHING

from webhook.console.rendering import single_file


def test_it_needs_nothing_else():
    text = single_file(EVERYTHING, EVERYTHING.scan)
    assert re.findall(r"<script|<link|<img|<form|url\(|@import|https?://", text) == []
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in text


def test_the_worst_are_in_it_with_their_pictures():
    text = single_file(EVERYTHING, EVERYTHING.scan)
    anchors = re.findall(r'href="#(apiVersion[^"]+)"', text)
    assert len(anchors) == 3
    assert [anchor for anchor in anchors if f'id="{anchor}"' not in text] == []
    assert text.count('class="bar"') == 6
    assert "All 4 workloads" not in text
    assert "4 workloads" in text
