package process

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The causes of contexts that a run's own limits ended.
var (
	ErrTimeout = errors.New("the timeout of the watch")
	ErrIdle    = errors.New("no job event and no output")
)

// WithTimeout returns a context that ends with ctx, after the timeout unless that is 0, or
// when end is called.
func WithTimeout(ctx context.Context, timeout time.Duration) (limited context.Context, end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := func() {}
	if timeout > 0 {
		ctx, release = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w is %s", ErrTimeout, timeout))
	}
	return ctx, func(cause error) {
		cancel(cause)
		release()
	}
}

// NewNonce returns a random positive integer of 63 bits, which identifies the processes
// of a run and its records.
func NewNonce() (int64, error) {
	var b [8]byte
	for {
		if _, err := rand.Read(b[:]); err != nil {
			return 0, fmt.Errorf("make a nonce: %w", err)
		}
		if n := int64(binary.LittleEndian.Uint64(b[:]) >> 1); n > 0 {
			return n, nil
		}
	}
}
