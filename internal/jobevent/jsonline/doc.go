// Package jsonline reads a stream of lines, most of them JSON, in memory that
// does not depend on what the lines hold.
//
// A Reader holds a window of 64 KiB of the current line. The caller walks over
// the line's JSON and says what it wants; everything else is passed over without
// being kept. What is kept is bounded: strings are cut between characters,
// values that hold too much or nest too deep are cut too, and say so.
//
// The package does not check that what it passes over is JSON in every detail,
// does not know what a line means, and does not write JSON.
package jsonline
