// Package informers holds informers of kinds that come and go to a real API server:
// one that may not be read, one whose CRD is made later, one whose CRD is deleted
// and made again, and others beside them that notice nothing.
package informers
