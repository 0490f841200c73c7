"""Tiles of dot products and row sums in explicit vector code.

What LLVM makes of plain loops here spends more time before and after each loop of 200 numbers (checks for
overlapping arrays, remainders, reductions) than inside it: these few operations, written in LLVM's vector types,
are two to three times faster.  Each stands for the loop in its docstring.  Rows must be a multiple of `LANES`
long (`padded`); the padding holds zeros, and stays zero because every operation is linear.

A tile's size (`rows`, `nodes`) must be a constant in the call, for its accumulators are registers.
"""

from __future__ import annotations

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

# Two rows by four nodes need eight accumulators: one register each, of whatever width this machine has.
LANES = 16 if get_host_cpu_features().get("avx512f") else 8
PAD = 16  # the same on every machine, so that a model's arrays do not depend on where it was trained

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_FAST = ("fast",)


def padded(width: int) -> int:
    """Smallest multiple of `PAD` that is at least `width`."""
    return -(-width // PAD) * PAD


class _Rows:
    """Rows of a 2-D float32 array inside a function that is being compiled."""

    def __init__(self, context, builder, array_type, value):
        array = context.make_array(array_type)(context, builder, value)
        self.builder = builder
        self.data = array.data
        self.width = cgutils.unpack_tuple(builder, array.shape)[1]

    def row(self, i):
        return self.builder.gep(self.data, [self.builder.mul(i, self.width)])

    def item(self, i, k):
        return self.builder.gep(self.data, [self.builder.add(self.builder.mul(i, self.width), k)])


def _vector_at(builder, row, h):
    return builder.bitcast(builder.gep(row, [h]), _VECTOR.as_pointer())


def _load(builder, row, h):
    return builder.load(_vector_at(builder, row, h), align=4)


def _store(builder, value, row, h):
    builder.store(value, _vector_at(builder, row, h), align=4)


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=_FAST), c, flags=_FAST)


def _broadcast(builder, scalar):
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


def _fold(builder, a, b):
    """Add neighbouring lanes of a and b: the sums of a's pairs, then of b's (b None: of a's alone)."""
    lanes = a.type.count
    length = 2 * lanes if b is not None else lanes
    other = b if b is not None else ir.Constant(a.type, ir.Undefined)
    index = ir.VectorType(ir.IntType(32), length // 2)
    even = builder.shuffle_vector(a, other, ir.Constant(index, list(range(0, length, 2))))
    odd = builder.shuffle_vector(a, other, ir.Constant(index, list(range(1, length, 2))))
    return builder.fadd(even, odd, flags=_FAST)


def _sums(builder, vectors):
    """The sum of each vector's lanes.  Four are folded together in fewer steps than one after the other."""
    count = len(vectors)
    while len(vectors) > 1:
        if len(vectors) % 2:
            vectors = [*vectors, vectors[-1]]
        vectors = [_fold(builder, a, b) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
    lanes = 1 << (count - 1).bit_length()
    vector = vectors[0]
    while vector.type.count > lanes:
        vector = _fold(builder, vector, None)
    return [builder.extract_element(vector, ir.Constant(ir.IntType(32), m)) for m in range(count)]


def _loop(builder, width, carried, body):
    """``for h in range(0, width, LANES): carried = body(h, carried)``; `width` is at least `LANES`."""
    before = builder.block
    head = builder.append_basic_block("vectors")
    after = builder.append_basic_block("after")
    builder.branch(head)
    builder.position_at_end(head)
    h = builder.phi(width.type)
    h.add_incoming(ir.Constant(width.type, 0), before)
    phis = [builder.phi(_VECTOR) for _ in carried]
    for phi, value in zip(phis, carried, strict=True):
        phi.add_incoming(value, before)
    results = body(h, phis)
    following = builder.add(h, ir.Constant(width.type, LANES))
    h.add_incoming(following, builder.block)
    for phi, value in zip(phis, results, strict=True):
        phi.add_incoming(value, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, width), head, after)
    builder.position_at_end(after)
    return results


def _offset(builder, base, j):
    return builder.add(base, ir.Constant(base.type, j))


def _by_tiles(builder, size, first, last, emit):
    """Run ``emit(k, size)`` for k = first, first + size, ...; then for what is left, four (if size is 8) and 1 to 3."""
    place = cgutils.alloca_once_value(builder, first)
    head, body, rest = (builder.append_basic_block(name) for name in ("head", "body", "rest"))
    builder.branch(head)
    builder.position_at_end(head)
    k = builder.load(place)
    left = builder.sub(last, k)
    builder.cbranch(builder.icmp_signed(">=", left, ir.Constant(left.type, size)), body, rest)
    builder.position_at_end(body)
    emit(k, size)
    builder.store(_offset(builder, k, size), place)
    builder.branch(head)
    builder.position_at_end(rest)
    if size > 4:
        with builder.if_then(builder.icmp_signed(">=", left, ir.Constant(left.type, 4))):
            emit(k, 4)
            builder.store(_offset(builder, k, 4), place)
        k = builder.load(place)
        left = builder.sub(last, k)
    for count in (1, 2, 3):
        with builder.if_then(builder.icmp_signed("==", left, ir.Constant(left.type, count))):
            emit(k, count)


def _add_tile(builder, targets, sources, weights, width):
    """target[b] += sum over a of weights[a][b] * source[a], for rows of `width` numbers."""

    def body(h, _):
        values = [_load(builder, row, h) for row in sources]
        for b, target in enumerate(targets):
            total = _load(builder, target, h)
            for a, value in enumerate(values):
                total = _multiply_add(builder, weights[a][b], value, total)
            _store(builder, total, target, h)
        return []

    _loop(builder, width, [], body)


def _views(context, builder, signature, args, places):
    return [_Rows(context, builder, signature.args[j], args[j]) for j in places]


@intrinsic(prefer_literal=True)
def dots(typingctx, x, i, v, path, p, r, first, last, z, rows):
    """z[r + a, k] = x[i + a] . v[path[p, k]] for a in range(rows), k in range(first, last)."""
    n_rows = rows.literal_value

    def codegen(context, builder, signature, args):
        x_, v_, path_, z_ = _views(context, builder, signature, args, (0, 2, 3, 8))
        i_, p_, r_ = args[1], args[4], args[5]
        left = [x_.row(_offset(builder, i_, a)) for a in range(n_rows)]

        def tile(k, count):
            right = [v_.row(builder.load(path_.item(p_, _offset(builder, k, b)))) for b in range(count)]

            def body(h, sums):
                xs = [_load(builder, row, h) for row in left]
                vs = [_load(builder, row, h) for row in right]
                pairs = [(a, b) for a in xs for b in vs]
                return [_multiply_add(builder, a, b, s) for (a, b), s in zip(pairs, sums, strict=True)]

            zero = ir.Constant(_VECTOR, [0.0] * LANES)
            sums = _loop(builder, x_.width, [zero] * (n_rows * count), body)
            for a in range(n_rows):
                for b, total in enumerate(_sums(builder, sums[a * count : (a + 1) * count])):
                    builder.store(total, z_.item(_offset(builder, r_, a), _offset(builder, k, b)))

        _by_tiles(builder, 8 // n_rows, args[6], args[7], tile)
        return context.get_dummy_value()

    return types.void(x, i, v, path, p, r, first, last, z, rows), codegen


@intrinsic(prefer_literal=True)
def add_path(typingctx, out, r, v, path, p, first, last, t, rows):
    """out[r + a] += sum over k in range(first, last) of t[r + a, k] * v[path[p, k]], for a in range(rows)."""
    n_rows = rows.literal_value

    def codegen(context, builder, signature, args):
        out_, v_, path_, t_ = _views(context, builder, signature, args, (0, 2, 3, 7))
        r_, p_ = args[1], args[4]
        targets = [out_.row(_offset(builder, r_, a)) for a in range(n_rows)]

        def tile(k, count):
            ks = [_offset(builder, k, b) for b in range(count)]
            sources = [v_.row(builder.load(path_.item(p_, k_))) for k_ in ks]
            rows_ = [_offset(builder, r_, a) for a in range(n_rows)]
            weights = [[_broadcast(builder, builder.load(t_.item(a, k_))) for a in rows_] for k_ in ks]
            _add_tile(builder, targets, sources, weights, out_.width)

        _by_tiles(builder, 8 // n_rows, args[5], args[6], tile)
        return context.get_dummy_value()

    return types.void(out, r, v, path, p, first, last, t, rows), codegen


@intrinsic(prefer_literal=True)
def add_outer(typingctx, out, first, last, x, i, t, r, step, rows):
    """out[k] += step * sum over a in range(rows) of t[r + a, k] * x[i + a], for k in range(first, last)."""
    n_rows = rows.literal_value

    def codegen(context, builder, signature, args):
        out_, x_, t_ = _views(context, builder, signature, args, (0, 3, 5))
        i_, r_, step_ = args[4], args[6], args[7]
        sources = [x_.row(_offset(builder, i_, a)) for a in range(n_rows)]

        def tile(k, count):
            ks = [_offset(builder, k, b) for b in range(count)]
            rows_ = [_offset(builder, r_, a) for a in range(n_rows)]
            weights = [[_scaled(builder, t_.item(a, k_), step_) for k_ in ks] for a in rows_]
            _add_tile(builder, [out_.row(k_) for k_ in ks], sources, weights, out_.width)

        _by_tiles(builder, 4, args[1], args[2], tile)
        return context.get_dummy_value()

    return types.void(out, first, last, x, i, t, r, step, rows), codegen


@intrinsic
def add_nodes(typingctx, out, path, p, first, last, x, i, t, begin, end, step):
    """out[path[p, k]] += step * sum over r in range(begin, end) of t[r, k] * x[i + r], for k in range(first, last)."""

    def codegen(context, builder, signature, args):
        out_, path_, x_, t_ = _views(context, builder, signature, args, (0, 1, 5, 7))
        p_, i_, step_ = args[2], args[6], args[10]

        def rows_tile(r, n_rows):
            rows = [_offset(builder, r, a) for a in range(n_rows)]
            sources = [x_.row(builder.add(i_, a)) for a in rows]

            def tile(k, count):
                ks = [_offset(builder, k, b) for b in range(count)]
                targets = [out_.row(builder.load(path_.item(p_, k_))) for k_ in ks]
                weights = [[_scaled(builder, t_.item(a, k_), step_) for k_ in ks] for a in rows]
                _add_tile(builder, targets, sources, weights, out_.width)

            _by_tiles(builder, 4, args[3], args[4], tile)

        _by_tiles(builder, 4, args[8], args[9], rows_tile)
        return context.get_dummy_value()

    return types.void(out, path, p, first, last, x, i, t, begin, end, step), codegen


@intrinsic
def add_row(typingctx, out, o, x, i, step):
    """out[o] += step * x[i]."""

    def codegen(context, builder, signature, args):
        out_, x_ = _views(context, builder, signature, args, (0, 2))
        weight = _broadcast(builder, args[4])
        _add_tile(builder, [out_.row(args[1])], [x_.row(args[3])], [[weight]], out_.width)
        return context.get_dummy_value()

    return types.void(out, o, x, i, step), codegen


@intrinsic
def rectify(typingctx, out, i, x, mask):
    """out[i] = maximum(x[0], 0) * mask[0]."""

    def codegen(context, builder, signature, args):
        out_, x_, mask_ = _views(context, builder, signature, args, (0, 2, 3))
        target, zero = out_.row(args[1]), ir.Constant(_VECTOR, [0.0] * LANES)

        def body(h, _):
            value = _load(builder, x_.data, h)
            positive = builder.select(builder.fcmp_ordered(">", value, zero), value, zero)
            _store(builder, builder.fmul(positive, _load(builder, mask_.data, h), flags=_FAST), target, h)
            return []

        _loop(builder, out_.width, [], body)
        return context.get_dummy_value()

    return types.void(out, i, x, mask), codegen


@intrinsic
def where_positive(typingctx, out, i, x, r, scale):
    """out[i] = scale * x[r] where out[i] > 0, and 0 elsewhere."""

    def codegen(context, builder, signature, args):
        out_, x_ = _views(context, builder, signature, args, (0, 2))
        target, source, zero = out_.row(args[1]), x_.row(args[3]), ir.Constant(_VECTOR, [0.0] * LANES)
        factor = _broadcast(builder, args[4])

        def body(h, _):
            scaled = builder.fmul(factor, _load(builder, source, h), flags=_FAST)
            positive = builder.fcmp_ordered(">", _load(builder, target, h), zero)
            _store(builder, builder.select(positive, scaled, zero), target, h)
            return []

        _loop(builder, out_.width, [], body)
        return context.get_dummy_value()

    return types.void(out, i, x, r, scale), codegen


def _scaled(builder, place, step):
    return _broadcast(builder, builder.fmul(builder.load(place), step, flags=_FAST))
