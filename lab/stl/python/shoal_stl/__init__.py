"""Traffic profiles written for TRex's STL API, read without TRex.

`child.py` is started by the lab, reads a request on standard input and answers with JSON. The modules beside it
offer the names that profiles import.
"""
