package harness

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// asked makes the test binary another process that asks for addresses.
const asked = "HARNESS_TEST_ADDRESSES"

// enough are so many that some would be the same if they were chosen by chance alone.
const enough = 400

func TestMain(m *testing.M) {
	if os.Getenv(asked) == "" {
		os.Exit(m.Run())
	}
	for range enough {
		address, err := FreeAddress()
		if err != nil {
			panic(err)
		}
		fmt.Println(address)
	}
	fmt.Println()
	_, _ = os.Stdin.Read(make([]byte, 1)) // Until its end it has them.
}

func TestNobodyElseIsGivenAnAddress(t *testing.T) {
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), asked+"=yes")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	given := map[string]int{}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != ""; {
		given[lines.Text()]++
	}
	for range enough {
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		given[address]++
	}
	if len(given) != 2*enough {
		t.Errorf("%d addresses were given to %d who asked", len(given), 2*enough)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}
