// Program visitors is the application of the Visitors site, in one image: "backend" counts visits in a
// MySQL database, and "frontend" serves the page that shows them.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		slog.Error("visitors ends", "error", err)
		os.Exit(1)
	}
}

// run serves until the context ends.
func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: visitors backend | visitors frontend")
	}
	switch args[0] {
	case "backend":
		visits, err := openStore(os.Getenv("DATABASE_HOST"), os.Getenv("DATABASE_PASSWORD"))
		if err != nil {
			return err
		}
		return serve(ctx, ":8000", newBackend(visits))
	case "frontend":
		return serve(ctx, ":3000", newFrontend(os.Getenv("BACKEND_URL"), os.Getenv("TITLE")))
	default:
		return fmt.Errorf("unknown part %q: write backend or frontend", args[0])
	}
}

// serve answers requests at an address. When the context ends, those that are being answered get five
// seconds.
func serve(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	slog.Info("serving", "address", address)
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", address, err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return server.Shutdown(grace)
}
