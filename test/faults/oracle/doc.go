// Package oracle judges the evidence of a fault plan: does what came out equal
// what comes out without the fault, and did every invariant hold on the way?
//
// The evidence is records that were kept independently: the runs' journal of what
// they did, the API proxy's journal of what the manager asked for, the API server's
// audit log of what it accepted, and what was found in the file system and the
// process table. The package is pure.
package oracle
