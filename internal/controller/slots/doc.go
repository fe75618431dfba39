// Package slots admits work: at most so many pieces at once over all groups, and
// among those that wait, in an order that lets none starve.
//
// A group is a watch and a name is a CR's, but the package does not know that.
// Limits of single groups are not its business: whoever calls Acquire from a
// bounded number of workers a group has them already.
//
// # The order
//
// What is urgent goes before what is new, and that before the rest. Among equals
// the group with the fewest live pieces goes first, then the one that waited
// longest since it was served; within a group, who came first.
//
// # The reserve
//
// Pieces may last for hours, and none is ever interrupted. So a group that has
// one at work already leaves a free slot for each group that has none, up to
// half of all slots. With a limit of at least twice the other groups, every group
// can therefore always begin a piece at once that is its only one, and waits for
// nothing but its own pieces after that. With a limit of 1 nothing can be kept
// free, and a long piece makes all others wait.
package slots
