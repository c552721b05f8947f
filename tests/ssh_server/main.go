// An ssh server that runs git's two commands on the repositories of a folder, for the tests of git as a source.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

var (
	root       = flag.String("root", ".", "the folder of the repositories")
	hostKey    = flag.String("host-key", "", "the file of the server's private key")
	authorized = flag.String("authorized", "", "the file of the public key that may log in")
	silent     = flag.Bool("silent", false, "let everybody in who may, and then say nothing")
	dying      = flag.Bool("dying", false, "take what is pushed, and go away without an answer")
	leaving    = flag.Bool("leaving", false, "go away once a hook has made the file `received`, and take what was pushed later")
	last       = flag.Bool("last", false, "end once something was pushed")
	vanishing  = flag.Bool("vanishing", false, "go away before anything can be pushed")
)

func main() {
	flag.Parse()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	config := settings()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		connection, err := listener.Accept()
		check(err)
		go serve(connection, config)
	}
}

func settings() *ssh.ServerConfig {
	known, _, _, _, err := ssh.ParseAuthorizedKey(read(*authorized))
	check(err)
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, shown ssh.PublicKey) (*ssh.Permissions, error) {
			if bytes.Equal(shown.Marshal(), known.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("nobody knows this key")
		},
	}
	signer, err := ssh.ParsePrivateKey(read(*hostKey))
	check(err)
	config.AddHostKey(signer)
	return config
}

func serve(connection net.Conn, config *ssh.ServerConfig) {
	defer connection.Close()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		log.Println(err)
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, asked, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range asked {
			var command struct{ Line string }
			if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
				request.Reply(false, nil)
				continue
			}
			request.Reply(true, nil)
			if *silent {
				continue
			}
			status := run(command.Line, channel)
			if (*dying || *vanishing || *leaving) && strings.HasPrefix(command.Line, "git-receive-pack") {
				if *last {
					os.Exit(0)
				}
				return
			}
			channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			channel.Close()
		}
	}
}

// run takes a line such as git-upload-pack '/specs.git'.
func run(line string, channel ssh.Channel) uint32 {
	verb, path, _ := strings.Cut(line, " ")
	if verb != "git-upload-pack" && verb != "git-receive-pack" {
		fmt.Fprintf(channel.Stderr(), "%s is not for you\n", verb)
		return 1
	}
	path = filepath.Join(*root, filepath.Clean("/"+strings.Trim(path, "'")))
	words := []string{strings.TrimPrefix(verb, "git-"), path}
	if *vanishing && verb == "git-receive-pack" {
		words = []string{"receive-pack", "--http-backend-info-refs", path}
	}
	command := exec.Command("git", words...)
	command.Stdout, command.Stderr = channel, channel.Stderr()
	// Not as the command's own, whose end would be waited for.
	input, err := command.StdinPipe()
	check(err)
	go func() {
		io.Copy(input, channel)
		input.Close()
	}()
	if (*dying || *leaving) && verb == "git-receive-pack" {
		command.Stdout = &once{channel}
	}
	if *leaving && verb == "git-receive-pack" {
		check(command.Start())
		go command.Wait()
		for {
			if _, err := os.Stat(filepath.Join(*root, "received")); err == nil {
				return 0
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if err := command.Run(); err != nil {
		return 1
	}
	return 0
}

// once passes on what is said before anything was pushed: the list of branches, which ends with four zeros.
type once struct{ to io.Writer }

func (o *once) Write(said []byte) (int, error) {
	if o.to == nil {
		return len(said), nil
	}
	written, err := o.to.Write(said)
	if bytes.HasSuffix(said, []byte("0000")) {
		o.to = nil
	}
	return written, err
}

func read(file string) []byte {
	text, err := os.ReadFile(file)
	check(err)
	return text
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
