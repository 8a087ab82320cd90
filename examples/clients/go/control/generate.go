// Package control is the client of minibroker's control API, generated from openapi.json.
package control

import _ "github.com/oapi-codegen/runtime" // what is generated needs it

//go:generate go tool oapi-codegen -generate models,client -package control -o control.gen.go ../../openapi.json
