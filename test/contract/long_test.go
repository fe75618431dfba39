//go:build long

package contract

const withLong = true
