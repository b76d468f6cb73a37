@extends('layout')

@section('title', __('messages.home'))

@section('content')
    <h1>{{ __('messages.greeting') }}, {{ auth()->user()->name ?? 'stranger' }}</h1>
    <p>{{ trans_choice('messages.visits', $visits) }}</p>
    <p>{{ __('messages.since', ['day' => $day]) }}</p>
@endsection

@push('foot')
    <footer>{{ url()->full() }} <img src="{{ asset('style.css') }}" alt=""></footer>
@endpush
