// Package accounts runs managers whose runs use the API in the name of service accounts of the
// resources' namespaces, and reads in the API server's audit log who did what.
package accounts
