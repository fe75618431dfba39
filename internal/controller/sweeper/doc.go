// Package sweeper removes the run directories of custom resources that went while
// nobody looked.
package sweeper
