<nav class="pages">
    {{ $paginator->currentPage() }}/{{ $paginator->lastPage() }}
    @if ($paginator->hasMorePages())
        <a rel="next" href="{{ $paginator->nextPageUrl() }}">&raquo;</a>
    @endif
</nav>
