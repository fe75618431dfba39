// Package written remembers what runs have written, so that no read shows less.
//
// Resource versions of one storage are numbers that grow, and a store is filled in
// their order: a store that has come to the version of a write shows it. A deletion
// whose answer has no version is remembered by the UID of the object. Where it is not
// known what a write came to, its session reads the kind live to its end, and all
// others as long as the write may still be carried out.
//
// What a run wrote holds for reads of all runs: one that begins must see what the one
// before it did. The package does not read or write anything.
package written
