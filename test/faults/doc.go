// Package faults performs fault plans, in the manner of Sieve and Acto, against a
// real manager on a real API server. The points are every write of the manager and
// every phase of a run. The faults at each are a crash, every class of API error, lost
// answers, missed and late watch events, and restarts that see the past. The result has
// to equal the result without the fault. The invariants I1 to I11 of the design have to
// hold on the way, as far as journals, file system and process table show.
//
//	apiproxy   makes faults between the manager and the API server
//	stub       stands in for Ansible: scripted runs that keep a journal
//	plan       the plans: names and products
//	trial      performs one plan and collects evidence: what the user did, what the
//	           managers and their runs did, and what is left in /proc and on disk
//	audit      reads the API server's own record of what it accepted
//	oracle     judges the evidence
//	campaign   performs many plans and prints the table
//	run        is the program of `make faults`, and of `make faults-mutants`:
//	           mutants/*.patch are patches of the product that the plans have to notice
//
// `make test` performs a fixed subset of the plans, in about a minute. With the
// build tag "long" (`make test-all`) come every third plan, a sample with the real
// Ansible, and a thousand resources at once. `make faults` performs all plans, or
// with PLANS=regexp those that are named; it takes PARALLEL=n and SEED=n, prints
// each plan as it ends and says how to perform a single one again.
package faults
