// Package httpapi serves the questions of the command line over HTTP, and asks them. A running recorder listens on a unix
// socket in its data directory that only its owner can open; the command given the same --dir talks to it.
//
// The JSON is that of the command line, one value a line.
package httpapi
