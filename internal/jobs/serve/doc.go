// Package serve serves the agents that execute runs in the pods of Jobs: each manager has one
// server. It authenticates an agent, by the service account token of its pod or by the session
// token that it got for that, and passes on its messages to its run in this manager.
//
// A manager that does not lead, or has not adopted the run, responds with 503 and wire.NotLeaderHeader,
// and has done nothing. The agent then tries others.
//
// The package knows no Jobs: Registry does.
package serve
