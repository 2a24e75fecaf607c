#!/usr/bin/env python3
"""Draws the ways that traced packets took: shoalctl --json show trace paths | trace-graph.py | dot -Tsvg > graph.svg"""
import json
import sys

paths = json.load(sys.stdin)
nodes, edges = {}, {}
for path in paths:
    for node in path["nodes"]:
        nodes[node] = nodes.get(node, 0) + path["count"]
    for pair in zip(path["nodes"], path["nodes"][1:]):
        edges[pair] = edges.get(pair, 0) + path["count"]
busiest = max(paths, key=lambda path: path["count"])["nodes"] if paths else []
main = set(zip(busiest, busiest[1:]))
print('digraph trace {\n  rankdir=LR; bgcolor="white"; nodesep=0.22; ranksep=0.35;')
print('  node [shape=box style="rounded,filled" fillcolor="#f4f6f8" color="#9aa5b1" fontname="Helvetica" fontsize=12];')
print('  edge [color="#9aa5b1" fontname="Helvetica" fontsize=10];')
for node, count in nodes.items():
    look = ""
    if node in busiest:
        look = ' fillcolor="#d7ecff" color="#1b6ec2"'
    elif node in ("drop", "error-drop") or node.endswith("-drop"):
        look = ' fillcolor="#ffe3e0" color="#c0392b"'
    print(f'  "{node}" [label="{node}\\n{count}"{look}];')
for (a, b), count in edges.items():
    look = ' color="#1b6ec2" penwidth=2.2' if (a, b) in main else ""
    print(f'  "{a}" -> "{b}" [label="{count}"{look}];')
print("}")
