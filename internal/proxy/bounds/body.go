package bounds

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// lastWords is how long a client may take for what is still written to it after Cut.
const lastWords = time.Second

// Patient gives the request's body, whose reading fails when nothing of it comes for so
// long. Each byte that comes begins the time anew, so that a long body may take long.
func Patient(w http.ResponseWriter, r *http.Request, patience time.Duration) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body
	}
	return &patient{ReadCloser: r.Body, ctx: r.Context(), connection: http.NewResponseController(w), patience: patience}
}

// Cut ends the waiting for a client: nothing more is read, and it must take soon what is
// written. A body that is Patient must have a request whose context has ended before.
func Cut(w http.ResponseWriter) {
	// A writer that knows no deadlines has no slow clients either.
	connection, now := http.NewResponseController(w), time.Now()
	_ = connection.SetReadDeadline(now)
	_ = connection.SetWriteDeadline(now.Add(lastWords))
}

type patient struct {
	io.ReadCloser

	ctx        context.Context //nolint:containedctx // It is that of the request whose body it is.
	connection *http.ResponseController
	patience   time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	_ = p.connection.SetReadDeadline(time.Now().Add(p.patience))
	if err := p.ctx.Err(); err != nil {
		return 0, err // Cut may have been before the deadline that has just been set.
	}
	n, err := p.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		// From here the server itself reads, to see the client hang up. After other
		// errors it tries to read what is left of the body, and must not wait for it.
		_ = p.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}
