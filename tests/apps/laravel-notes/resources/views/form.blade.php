<form method="post" action="{{ $action }}" enctype="multipart/form-data">
    @csrf
    @foreach ($fields ?? [] as $name => $type)
        <label>{{ $name }}
            <input name="{{ $name }}" type="{{ $type }}" @if ($type === 'text') value="{{ old($name) }}" @endif
                @error($name) class="wrong" @enderror>
        </label>
    @endforeach
    <button>{{ $button }}</button>
</form>
