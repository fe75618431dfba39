package bounds

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Patient gives a body whose reading fails when nothing of it comes for so long. Each
// byte that comes begins the time anew, so that a long body may take long.
func Patient(w http.ResponseWriter, body io.ReadCloser, patience time.Duration) io.ReadCloser {
	if body == nil || body == http.NoBody {
		return body
	}
	return &patient{ReadCloser: body, connection: http.NewResponseController(w), patience: patience}
}

type patient struct {
	io.ReadCloser

	connection *http.ResponseController
	patience   time.Duration
}

func (p *patient) Read(b []byte) (int, error) {
	// A writer that knows no deadlines has no slow clients either.
	_ = p.connection.SetReadDeadline(time.Now().Add(p.patience))
	n, err := p.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		// From here the server itself reads, to see the client hang up. After other
		// errors it tries to read what is left of the body, and must not wait for it.
		_ = p.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}
