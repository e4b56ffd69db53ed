"""Builds of TensorFlow on which interception works, by `builds.digest`.

Written by tests/compatibility/known_builds.
"""

from __future__ import annotations

KNOWN = {
    "5b97d893cc6f997289ba08ccc2a34948": "2.16.1, 2.16.1 macos, 2.16.2",
    "02cf4e70b4395872a948f92f8b628c6e": "2.17.0, 2.17.0 linux, 2.17.1",
    "9fb66ee2895688f76a85bb87da516802": "2.18.0, 2.18.1",
    "259244b586681fe078041cacfd723955": "2.19.0, 2.19.0 aarch64, 2.19.1",
    "f9ed954f691e31988e760c87be256f75": "2.20.0, 2.20.0 windows, 2.21.0, 2.21.0 macos",
}
