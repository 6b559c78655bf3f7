// Prints how compose-go, the library behind `docker compose config`, reads Compose files. Standard input is a JSON
// array of requests; standard output is an array with one answer for each: the project, or why it was refused.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

type request struct {
	Folder   string   `json:"folder"`
	Files    []string `json:"files"` // absolute paths; later files override earlier ones
	Profiles []string `json:"profiles"`
}

type answer struct {
	Project any    `json:"project,omitempty"`
	Refused string `json:"refused,omitempty"`
}

func load(r request) (found answer) {
	defer func() {
		if wrong := recover(); wrong != nil { // compose-go panics on some wrong types
			found = answer{Refused: fmt.Sprint("panic: ", wrong)}
		}
	}()
	os.Setenv("PWD", r.Folder) // as for somebody who calls Compose in the folder of the file
	options, err := cli.NewProjectOptions(r.Files,
		cli.WithWorkingDirectory(r.Folder),
		cli.WithOsEnv,
		cli.WithEnvFiles(),
		cli.WithDotEnv,
		cli.WithDefaultProfiles(r.Profiles...))
	if err != nil {
		return answer{Refused: err.Error()}
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return answer{Refused: err.Error()}
	}
	return answer{Project: project}
}

func main() {
	var requests []request
	if err := json.NewDecoder(os.Stdin).Decode(&requests); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(3)
	}
	answers := []answer{}
	for _, r := range requests {
		answers = append(answers, load(r))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(3)
	}
}
