//go:build tools

// Package main keeps GoVPP's generator among the pinned modules.
package main

import _ "go.fd.io/govpp/cmd/binapi-generator"
