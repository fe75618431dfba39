// Package ensign tests managers as Go programs have them, by package pkg/ensign, on a real control
// plane. Two run in one process; one has reconcilers and a cache of its own beside watches; one has
// only charts where there is no Python. It also tests what a process cannot have twice.
//
// The suites of the program, which has the same composition, test what managers do with their CRs.
package ensign
