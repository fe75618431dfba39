// Package process starts the programs of runs, reads their reports, and ends them.
//
// A program reports records on one pipe, and prints text on others. Start begins to read
// the records, and keeps the end of the text. Wait returns after the last process of the
// run has ended and all its output has been read. If its context ends first, Wait sends
// TERM to all processes of the run, and KILL after a grace time.
//
// TakeOver opens the directory of runs after ending the processes that a killed manager left in it.
//
// The package does not know programs or the meaning of records, or whether a run succeeded.
package process
