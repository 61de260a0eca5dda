"""Names that carry data out, told from names that content networks really use."""

import base64
import hashlib

import pytest

from doorward.proxy.carried_data import why_it_carries_data


@pytest.mark.parametrize("labels", [
    "www", "api.eu-west-1", "d111111abcdef8", "0f4c1f6d2b9e4a7788cc90ab12cd34ef", "productionresultssa16.blob",
    "6f1ed002-ab12-4e77-9cde-0123456789ab", "registry-1", "my-very-long-service-name-in-the-staging-cluster",
    "cluster-cdxyzabc1234.us-east-1", "xn--bcher-kva", "",
])  # fmt: skip
def test_names_in_use_pass(labels):
    assert why_it_carries_data(labels) is None


@pytest.mark.parametrize("size", [30, 32, 38])
def test_encoded_data_does_not(size):
    """P-DN-01."""
    data = hashlib.sha512(b"secret").digest()[:size]
    label = base64.b32encode(data).decode().lower().rstrip("=")[:52]
    assert "carried data" in why_it_carries_data(f"{label}.a")


def test_nor_does_a_label_that_is_filled_up():
    """P-DN-01."""
    assert "63 characters" in why_it_carries_data("a" * 63)
