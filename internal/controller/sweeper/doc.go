// Package sweeper removes the run directories of CRs whose deletion no controller saw.
//
// A Sweeper lists all CRs of the watched kinds at its start and about every hour, and
// removes the directories of UIDs that it did not find. It removes nothing if it could not
// list every kind. The controller of a watch removes the directories of CRs that it sees
// go.
package sweeper
