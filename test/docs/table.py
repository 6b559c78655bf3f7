"""Reads the table of commands and options from `rose help --json`, and checks command lines against it."""
import json
import subprocess


class Table:
    def __init__(self, rose):
        told = json.loads(subprocess.run([rose, "help", "--json"], check=True, capture_output=True, text=True).stdout)
        self.version = told["version"]
        self.commands = {c["command"]: c for c in told["commands"]}

    def problem(self, words):
        """Returns what is wrong with `words`, a command line without "rose" itself; "" if rose would accept it."""
        if words and words[0] in ("--help", "-h", "--version"):
            return ""
        if not words or words[0] not in self.commands:
            return f"there is no command '{words[0] if words else ''}'"
        name, rest = words[0], words[1:]
        while rest and f"{name} {rest[0]}" in self.commands:
            name, rest = f"{name} {rest[0]}", rest[1:]
        return self._arguments(name, rest)

    def _arguments(self, name, words):
        command = self.commands[name]
        options = {n: o for o in command["options"] if not o["positional"] for n in o["names"]}
        places = [o for o in command["options"] if o["positional"]]
        given, seen, dashes, i = [], set(), False, 0
        while i < len(words):
            word = words[i]
            i += 1
            if dashes or not word.startswith("-") or word == "-":
                given.append(word)
                dashes = dashes or (len(given) <= len(places) and places[len(given) - 1]["rest"])
                continue
            if word == "--":
                dashes = True
                continue
            option_name, equals, value = word.partition("=")
            if not word.startswith("--") and len(word) > 2:  # such as -ofile: the option and its value in one word
                option_name, equals, value = word[:2], "=", word[2:]
            if option_name not in options:
                return f"'rose {name}' has no option '{option_name}'"
            option = options[option_name]
            seen.add(option["names"][-1])
            if option["flag"]:
                if equals:
                    return f"{option_name} takes no value"
                continue
            values = [value] if equals else words[i : i + 1]
            i += 0 if equals else 1
            if not values or not values[0]:
                return f"{option_name} lacks its {option['value']}"
            while option["list"] and not equals and i < len(words) and not words[i].startswith("-"):
                values.append(words[i])
                i += 1
            for one in values:
                for part in one.split(option["separator"]) if "separator" in option else [one]:
                    if "choices" in option and part not in option["choices"]:
                        return f"{option_name}: {part} is none of {option['choices']}"
                    if "range" in option and not (part.isdigit()
                                                  and option["range"][0] <= int(part) <= option["range"][1]):
                        return f"{option_name}: {part} is not in {option['range']}"
        for option in command["options"]:
            if option["required"] and not option["positional"] and option["names"][-1] not in seen and not seen & {
                "--help", "--version"}:
                return f"{option['names'][-1]} is required"
        if len(given) < sum(o["required"] for o in places):
            return f"'rose {name}' lacks {places[len(given)]['value']}"
        if len(given) > len(places) and not (places and places[-1]["list"]):
            return f"'rose {name}' takes no '{given[len(places)]}'"
        for option, value in zip(places, given):
            if "choices" in option and value not in option["choices"]:
                return f"{value} is none of {option['choices']}"
        return ""
