"""Inspection: requests inside TLS, read by a worker of its own and judged by the door.

`link` and `tunnel` are the door's side, on its loop. Everything else runs in the worker, which may be another
interpreter's: there mitmproxy's protocol core ends TLS and speaks HTTP, and asks the door about every request. The
worker resolves no name, dials nobody and holds no rule: connections and answers come from the door.
"""
