// Package ensign shows managers as Go programs have them, by package pkg/ensign, on a real control
// plane: two of them in one process, one with reconcilers and a cache of its own beside watches,
// one of charts alone where there is no Python, and what a process cannot have twice.
//
// What managers do with their CRs is shown by the suites of the program, which has the same
// composition.
package ensign
