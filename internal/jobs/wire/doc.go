// Package wire has the protocol between a manager and the agent in the pod of a Job: names, paths, and
// the JSON of requests and responses. The agent finds the manager that leads, claims its run, sends
// events and then the result, and forwards the run's requests to the API.
//
// Either side may be a version older than the other: fields are added, and never change their
// meaning. The termination message is the only exception: a reader takes all of it or nothing.
//
// The package sends nothing, and knows neither Jobs nor connections.
package wire
