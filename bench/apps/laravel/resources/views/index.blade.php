@extends('layout')

@section('title', 'Items')

@section('content')
    <h1>Items</h1>
    @if ($visits > 1)
        <p>You have been here {{ $visits }} times.</p>
    @else
        <p>You have been here once.</p>
    @endif
    <ul>
        @foreach ($items as $item)
            <li @if ($loop->even) class="even" @endif>
                <a href="{{ route('item', ['id' => $item['id']]) }}">{{ $item['name'] }}</a>: {{ number_format($item['price'], 2) }}
            </li>
        @endforeach
    </ul>
@endsection
