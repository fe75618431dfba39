// Package slots limits how many runs of all watches execute at the same time, and decides which
// waiting run gets the next free slot.
//
// New makes the slots; Acquire waits for one. A group is the runs of a watched kind. The
// package knows nothing else of watches and runs, and does not limit the executing runs of a single
// group: the number of workers that call Acquire for a group does that.
//
// # Order
//
// The run with the highest priority goes first. Among runs with the same priority, the one
// whose group has the fewest executing runs goes first, then the one whose group was admitted
// the longest ago. Within a group, the run that came first goes first.
//
// # Reserved slots
//
// Runs may take hours, and none is interrupted for another. So a group that has an executing run
// leaves a free slot for each group that has none, up to half of all slots. If there are at
// least twice as many slots as other groups, a group without an executing run always gets a slot
// at once. With a single slot nothing can be reserved, and a long run makes all others wait.
//
// A run that executes already when the manager starts gets a slot at once, whatever the limit.
package slots
