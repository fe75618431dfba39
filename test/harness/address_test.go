package harness

import "testing"

// enough are so many that some would be the same if they were chosen by chance alone.
const enough = 800

// The kernel keeps the addresses apart, so that it does not matter which process asks.
func TestNobodyElseIsGivenAnAddress(t *testing.T) {
	given := map[string]bool{}
	for range enough {
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		given[address] = true
	}
	if len(given) != enough {
		t.Errorf("%d addresses were given to %d who asked", len(given), enough)
	}
}
