// Command program is every program of the stub of a Python environment.
package main

import (
	"os"

	"github.com/ensign-operator/ensign/test/faults/stub"
)

func main() { os.Exit(stub.Main()) }
