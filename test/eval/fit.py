"""A conditional logit model: the probability that a candidate of a case is the cause, by weighted features. It has an
L2 penalty. All systems have the same influence, however many cases they have. Needs numpy.

The weights are those that rose uses: each keeps its sign, and the penalty pulls it to the weight that was chosen
by reasoning (features.def). A weight without a sign keeps the weight that was chosen."""
import numpy

# at most this many steps of Newton's method; few suffice, because the penalised likelihood is smooth and nearly concave
STEPS = 60
ENOUGH = 1e-6  # the method ends when a step is shorter than this


class Choice:
    """A case: the features of its candidates and, for each fault of the cause, the candidates that match it."""

    def __init__(self, system, candidates, causes):
        self.system = system
        self.features = [one.get("features", {}) for one in candidates]
        self.causes = [places for places in causes if places]
        self.whole = bool(causes) and len(self.causes) == len(causes)


def tasks_of(choices, rows):
    """Returns the tasks of a case: pairs of the candidates' features and the positions of the right candidates. If the
    cause has several faults, there is a task for each of them, without the candidates of the faults before it."""
    tasks = []
    for choice, row in zip(choices, rows):
        found = []
        taken = set()
        for places in choice.causes if choice.whole else []:
            rest = [i for i in range(len(row)) if i not in taken]
            right = [rest.index(i) for i in places if i in rest]
            if right and len(rest) > 1:
                found.append((row[rest], right))
            taken.update(places)
        tasks.append((choice.system, found))
    return tasks


class Signed:
    """Weights with their signs and prior values. `known` contains the features as printed by `rose diagnose
    --show-weights --json` or by `rose explain` with the same options."""

    def __init__(self, known, strength):
        self.names = [one["name"] for one in known]
        self.signs = numpy.array([one["sign"] for one in known], dtype=float)
        self.prior = numpy.array([one["prior"] for one in known], dtype=float)
        self.strength = strength

    def tasks(self, choices):
        rows = [
            numpy.array([[one.get(name, 0.0) for name in self.names] for one in choice.features]).reshape(
                -1, len(self.names)
            )
            for choice in choices
        ]
        return rows, tasks_of(choices, rows)

    def fit(self, tasks, start=None):
        """Applies Newton's method to all weights, except to those that are 0 and would get the wrong sign. `start`
        contains the weights to begin with, by default the prior values."""
        systems = {}
        for system, found in tasks:
            if found:
                systems[system] = systems.get(system, 0) + 1
        weights = (self.prior if start is None else start).copy()
        for _ in range(STEPS):
            gradient = -self.strength * (weights - self.prior)
            curve = self.strength * numpy.eye(len(weights))
            for system, found in tasks:
                for row, right in found:
                    share = 1.0 / systems[system] / len(found)
                    scores = row @ weights
                    chances = numpy.exp(scores - scores.max())
                    chances /= chances.sum()
                    of_right = chances[right] / chances[right].sum()
                    mean = chances @ row
                    gradient += share * (of_right @ row[right] - mean)
                    curve += share * ((row * chances[:, None]).T @ row - numpy.outer(mean, mean))
            free = (self.signs != 0) & ((weights != 0) | (gradient * self.signs > 0))
            step = numpy.zeros(len(weights))
            if free.any():
                step[free] = numpy.linalg.solve(curve[numpy.ix_(free, free)], gradient[free])
            length = numpy.abs(step).max()
            step = step if length < 1 else step / length
            next_weights = weights + step
            next_weights[next_weights * self.signs < 0] = 0
            done = numpy.abs(next_weights - weights).max() < ENOUGH
            weights = next_weights
            if done:
                break
        return weights

    def leave_one_system_out(self, choices, rank):
        """Returns the ranks of all cases, and the weights fitted on all cases. The rank of a case is determined with
        weights that are fitted on the other systems. `rank(i, keys)` is the rank of case i when its candidates are
        sorted by `keys`."""
        rows, tasks = self.tasks(choices)
        everything = self.fit(tasks)
        by_system = {
            system: self.fit([(one, found) for one, found in tasks if one != system], everything)
            for system in sorted({choice.system for choice in choices})
        }
        ranks = []
        for i, (choice, row) in enumerate(zip(choices, rows)):
            scores = row @ by_system[choice.system] if len(row) else []
            ranks.append(rank(i, [-score for score in scores]))
        return ranks, [
            {"feature": name, "value": round(float(value), 4)} for name, value in zip(self.names, everything)
        ]
