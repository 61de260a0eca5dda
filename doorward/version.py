"""The version, in one place that needs no package metadata to be read."""

VERSION = "0.1.0"
