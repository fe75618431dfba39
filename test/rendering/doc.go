// Package rendering compares what chart-exec renders with what helm template prints, byte by byte.
package rendering
