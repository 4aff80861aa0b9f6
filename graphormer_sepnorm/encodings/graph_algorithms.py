"""Compiled loops over packed molecular graphs, from ``adjacency``; importing this imports Numba."""

import numpy as np

from graphormer_sepnorm.encodings.base import LONGEST_DISTANCE, UNREACHABLE, Adjacency
from graphormer_sepnorm.system.device import compiled


@compiled
def is_smaller_path(path: np.ndarray, best: np.ndarray) -> bool:
    for k in range(path.shape[0]):
        if path[k] != best[k]:
            return path[k] < best[k]
    return False


@compiled
def paths_from(source, start, neighbour, kind, spd, paths, queue, candidate):
    """Breadth-first search from one atom; of equally short paths, the one with the smallest bond types is kept."""
    hops = paths.shape[1]
    spd[source] = 0
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        atom = queue[head]
        head += 1
        distance = min(spd[atom] + 1, LONGEST_DISTANCE)
        for e in range(start[atom], start[atom + 1]):
            other = neighbour[e]
            is_new = spd[other] == UNREACHABLE
            if is_new:
                spd[other] = distance
                queue[tail] = other
                tail += 1
            elif spd[other] != distance or other == source or distance == LONGEST_DISTANCE:
                continue
            candidate[:] = paths[atom]
            if distance <= hops:
                candidate[distance - 1] = kind[e]
            if is_new or is_smaller_path(candidate, paths[other]):
                paths[other] = candidate


@compiled
def shortest_paths(graph: Adjacency, hops: int) -> tuple[np.ndarray, np.ndarray]:
    """spd uint8 [P] (255: no path), and [P, hops] bond types of the path that is first in lexicographic order."""
    atom_ptr, pair_ptr, start, neighbour, bond = graph
    spd, path_bonds = np.full(pair_ptr[-1], UNREACHABLE, np.uint8), np.zeros((pair_ptr[-1], hops), np.uint8)
    candidate = np.empty(hops, np.uint8)
    for m in range(len(atom_ptr) - 1):
        n, pair = atom_ptr[m + 1] - atom_ptr[m], pair_ptr[m]
        queue = np.empty(n, np.int64)
        for i in range(n):
            row = slice(pair + i * n, pair + (i + 1) * n)
            paths_from(i, start[atom_ptr[m] :], neighbour, bond, spd[row], path_bonds[row], queue, candidate)
    return spd, path_bonds


@compiled
def random_walks(graph: Adjacency, steps: int) -> np.ndarray:
    """((D^-1 A)^k)_ij for k = 0..steps-1: float32 [P, steps]; D^-1 = 0 for an atom without bonds."""
    atom_ptr, pair_ptr, start, neighbour, _ = graph
    out = np.zeros((pair_ptr[-1], steps), np.float32)
    for m in range(len(atom_ptr) - 1):
        n, pair, first = atom_ptr[m + 1] - atom_ptr[m], pair_ptr[m], start[atom_ptr[m] :]
        walk = np.eye(n)
        for k in range(steps):
            out[pair : pair + n * n, k] = walk.ravel()
            after = np.zeros((n, n))
            for i in range(n):
                degree = first[i + 1] - first[i]
                for e in range(first[i], first[i + 1]):
                    for j in range(n):
                        after[i, j] += walk[neighbour[e], j] / degree
            walk = after
    return out


@compiled
def resistances(graph: Adjacency, components: np.ndarray, cap: float) -> np.ndarray:
    """Resistances L+_ii + L+_jj - 2 L+_ij in bonds: float32 [P], at most ``cap``, which unconnected atoms have.

    L+ is the pseudo-inverse of the Laplacian (Klein and Randic, 1993). In a connected component, (L + J/n)^-1 with J
    all ones is L+ plus a multiple of J, which cancels.
    """
    atom_ptr, pair_ptr, start, neighbour, _ = graph
    out = np.empty(pair_ptr[-1], np.float32)
    for m in range(len(atom_ptr) - 1):
        n, pair, first = atom_ptr[m + 1] - atom_ptr[m], pair_ptr[m], start[atom_ptr[m] :]
        component = components[atom_ptr[m] :]
        laplacian = np.zeros((n, n))
        for i in range(n):
            laplacian[i, i] = first[i + 1] - first[i]
            for e in range(first[i], first[i + 1]):
                laplacian[i, neighbour[e]] -= 1
            for j in range(n):
                if component[i] == component[j]:
                    laplacian[i, j] += 1 / n
        inverse = np.linalg.inv(laplacian)
        for i in range(n):
            for j in range(n):
                distance = inverse[i, i] + inverse[j, j] - inverse[i, j] - inverse[j, i]
                out[pair + i * n + j] = min(max(distance, 0.0), cap) if component[i] == component[j] else cap
    return out


@compiled
def count_ring(counts: np.ndarray, size: int) -> None:
    """Adds a ring of this size to an atom's counts of rings with at least 3, 4, ... atoms, each at most 255."""
    for k in range(size - 2):
        counts[k] = min(counts[k] + 1, 255)


@compiled
def mark_rings(
    atom_ptr: np.ndarray, pair_ptr: np.ndarray, molecule: np.ndarray, ring_ptr: np.ndarray, atoms: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of rings ``atoms[ring_ptr[r]:ring_ptr[r + 1]]``: counts uint8 [T, most - 2], smallest shared ring [P]."""
    counts, shared = np.zeros((atom_ptr[-1], most - 2), np.uint8), np.zeros(pair_ptr[-1], np.uint8)
    for r in range(len(molecule)):
        m = molecule[r]
        n = atom_ptr[m + 1] - atom_ptr[m]
        ring = atoms[ring_ptr[r] : ring_ptr[r + 1]]
        size = min(len(ring), most)
        for i in ring:
            count_ring(counts[atom_ptr[m] + i], size)
            for j in ring:
                pair = pair_ptr[m] + i * n + j
                if shared[pair] == 0 or size < shared[pair]:
                    shared[pair] = size
    return counts, shared


@compiled
def distances_above(root: int, start: np.ndarray, neighbour: np.ndarray, distance: np.ndarray, queue: np.ndarray):
    """Distances in bonds from an atom along paths through atoms with larger numbers, -1 if there is no such path."""
    distance[root] = 0
    queue[0] = root
    head, tail = 0, 1
    while head < tail:
        atom = queue[head]
        head += 1
        for e in range(start[atom], start[atom + 1]):
            other = neighbour[e]
            if other > root and distance[other] < 0:
                distance[other] = distance[atom] + 1
                queue[tail] = other
                tail += 1


@compiled
def count_cycles(atom_ptr: np.ndarray, start: np.ndarray, neighbour: np.ndarray, most: int) -> np.ndarray:
    """Number of chordless cycles with at least 3, 4, ... ``most`` atoms through each atom: uint8 [T, most - 2].

    From each atom, the root, paths grow through atoms with larger numbers that are bonded to the end of the path and to
    no other atom of it but the root, which completes a cycle. Each cycle is found in both directions and counted in the
    one whose second atom has a smaller number than the last. Atoms too far from the root to return are skipped.
    """
    num_atoms = atom_ptr[-1]
    counts = np.zeros((num_atoms, most - 2), np.uint8)
    distance = np.full(num_atoms, -1, np.int64)
    queue = np.empty(num_atoms, np.int64)
    bonded = np.zeros(num_atoms, np.int64)  # number of bonds to atoms of the path after the root
    path, untried = np.empty(most, np.int64), np.empty(most, np.int64)
    for m in range(len(atom_ptr) - 1):
        for root in range(atom_ptr[m], atom_ptr[m + 1]):
            distance[atom_ptr[m] : atom_ptr[m + 1]] = -1
            distances_above(root, start, neighbour, distance, queue)
            path[0], untried[0], end = root, start[root], 0
            while end >= 0:
                atom = path[end]
                if untried[end] == start[atom + 1]:
                    if end > 0:
                        for e in range(start[atom], start[atom + 1]):
                            bonded[neighbour[e]] -= 1
                    end -= 1
                    continue
                other = neighbour[untried[end]]
                untried[end] += 1
                if other <= root or bonded[other] > 1 or end + 1 + distance[other] > most:
                    continue
                if end > 0 and distance[other] == 1:
                    if path[1] < other:
                        path[end + 1] = other
                        for i in path[: end + 2]:
                            count_ring(counts[i], end + 2)
                    continue
                end += 1
                path[end], untried[end] = other, start[other]
                for e in range(start[other], start[other + 1]):
                    bonded[neighbour[e]] += 1
    return counts
